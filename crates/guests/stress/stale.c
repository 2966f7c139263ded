/* A thread on one CPU uses a page that a thread on another takes away. When munmap, or mprotect, has returned, no access by the
 * old translation may succeed. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, ROUNDS = 60 };

static char *volatile page;
/* The round that has begun, in which the user has used the page, that is over for the taker, and for the user. */
static atomic_int begun, used, taken, left;
static atomic_int stale;
static sigjmp_buf out;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void on_cpu(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		fail("sched_setaffinity");
}

static void refused(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

/* Writes the page until that is refused, as it must be as soon as the page is taken. */
static void use(int round)
{
	if (sigsetjmp(out, 1))
		return;
	for (;;) {
		int late = atomic_load(&taken) == round;
		*(volatile char *)page = 1;
		atomic_store(&used, round);
		if (late) {
			atomic_fetch_add(&stale, 1);
			return;
		}
	}
}

static void *user(void *unused)
{
	on_cpu(1);
	for (int round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&begun) != round)
			;
		use(round);
		atomic_store(&left, round);
	}
	return unused;
}

static void take(int round)
{
	if (round % 2 ? munmap(page, PAGE) : mprotect(page, PAGE, PROT_READ))
		fail("the page stays");
}

int main(void)
{
	signal(SIGSEGV, refused);
	on_cpu(0);
	pthread_t thread;
	if (pthread_create(&thread, 0, user, 0))
		fail("pthread_create");
	for (int round = 1; round <= ROUNDS; round++) {
		page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			fail("mmap");
		atomic_store(&begun, round);
		while (atomic_load(&used) != round)
			;
		take(round);
		atomic_store(&taken, round);
		while (atomic_load(&left) != round)
			;
		munmap(page, PAGE);
	}
	pthread_join(thread, 0);
	printf("stale translations in %s rounds\n", stale ? "some" : "no");
	return stale != 0;
}
