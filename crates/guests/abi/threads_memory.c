/* Threads that map, touch, protect, unmap and fork in one address space. */
#include "abi.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { COUNT = 4, ROUNDS = 50, PAGES = 32 };

static char *common;
static _Atomic long wrong;
static _Atomic int all_there;

/* On memory of its own. */
static void *map_alone(void *number)
{
	char value = 1 + (intptr_t)number;
	for (int i = 0; i < ROUNDS; i++) {
		char *at = memory(PAGES);
		wrong += !all(at, PAGES * PAGE, 0);
		memset(at, value, PAGES * PAGE);
		wrong += mprotect(at, PAGE, PROT_READ) != 0;
		wrong += !all(at, PAGES * PAGE, value);
		wrong += munmap(at, PAGES * PAGE) != 0;
	}
	return NULL;
}

/* Each has every fourth page of the same mapping. */
static void *drop_pages(void *number)
{
	for (int i = 0; i < ROUNDS; i++)
		for (long page = (intptr_t)number; page < PAGES; page += COUNT) {
			char *at = common + page * PAGE;
			*at = 7;
			wrong += madvise(at, PAGE, MADV_DONTNEED) != 0;
			wrong += *at != 0;
		}
	return NULL;
}

static void *fork_and_wait(void *number)
{
	for (int i = 0; i < 10; i++) {
		int status;
		pid_t child = fork();
		if (child == 0)
			_exit((intptr_t)number + 1);
		wrong += waitpid(child, &status, 0) != child || WEXITSTATUS(status) != (intptr_t)number + 1;
	}
	return NULL;
}

/* A thread that moves the break is told where it went, not where others have moved it since. */
static void *move_break(void *base)
{
	/* What makes threads may need the heap. */
	while (!all_there)
		sched_yield();
	for (int i = 0; i < 10 * ROUNDS; i++)
		for (long page = 1; page <= 3; page++) {
			long end = (long)base + page * PAGE;
			wrong += syscall(SYS_brk, end) != end;
		}
	return NULL;
}

static void move_breaks(void)
{
	pthread_t thread[COUNT];
	void *base = (void *)(syscall(SYS_brk, 0) + COUNT * PAGE);
	for (long i = 0; i < COUNT; i++)
		need(pthread_create(&thread[i], NULL, move_break, base) == 0, "pthread_create");
	all_there = 1;
	for (long i = 0; i < COUNT; i++)
		pthread_join(thread[i], NULL);
	say("the break: %ld wrong", (long)wrong);
}

static void run(const char *what, void *(*body)(void *))
{
	pthread_t thread[COUNT];
	for (long i = 0; i < COUNT; i++)
		need(pthread_create(&thread[i], NULL, body, (void *)i) == 0, "pthread_create");
	for (long i = 0; i < COUNT; i++)
		pthread_join(thread[i], NULL);
	say("%s: %ld wrong", what, (long)wrong);
}

int main(void)
{
	common = memory(PAGES);
	run("mappings of their own", map_alone);
	run("pages of one mapping", drop_pages);
	run("forks", fork_and_wait);
	move_breaks();
	return 0;
}
