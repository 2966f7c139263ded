/* What the policies of a preset have to do: two threads map, touch, protect and unmap concurrently, in their own part of
 * the space and in a shared one, while children see what was there at their fork. Then calls write to
 * memory that another thread changes meanwhile. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 40, ROUNDS = 24, FORKS = 6, THREADS = 2, AREA = 16, CHANGES = 600 };

static void fail(const char *what)
{
	puts(what);
	exit(1);
}

static char *map(size_t pages, int flags)
{
	char *place = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	if (place == MAP_FAILED)
		fail("no room");
	return place;
}

static void fill(char *place, size_t pages, uint64_t value)
{
	for (size_t page = 0; page < pages; page++)
		*(volatile uint64_t *)(place + page * PAGE) = value + page;
}

static void check(const char *place, size_t pages, uint64_t value, const char *what)
{
	for (size_t page = 0; page < pages; page++)
		if (*(volatile uint64_t *)(place + page * PAGE) != value + page)
			fail(what);
}

/* A child sees the parent's pages, and what it writes is its own. */
static void fork_once(char *place, char *shared, uint64_t value)
{
	pid_t child = fork();
	if (child < 0)
		fail("no child");
	if (!child) {
		check(place, PAGES, value, "a child has other pages than its parent");
		fill(place, PAGES, ~value);
		check(place, PAGES, ~value, "a child's pages change");
		fill(shared, PAGES, value);
		_exit(0);
	}
	int status;
	if (waitpid(child, &status, 0) != child || status)
		fail("a child has failed");
	check(place, PAGES, value, "a child has written its parent's pages");
	check(shared, PAGES, value, "a child's shared pages are its own");
}

static void *live(void *number)
{
	uint64_t seed = (uintptr_t)number << 32;
	char *shared = map(PAGES, MAP_SHARED);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t value = seed | round << 16;
		char *place = map(PAGES, MAP_PRIVATE);
		check(place, 1, 0, "a new page is not empty");
		fill(place, PAGES, value);
		if (mprotect(place, PAGES * PAGE, PROT_READ))
			fail("mprotect");
		check(place, PAGES, value, "pages change when they are protected");
		/* The middle goes, and comes back empty. */
		char *middle = place + PAGES / 2 * PAGE;
		if (munmap(middle, PAGE) || mmap(middle, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
						 -1, 0) != middle)
			fail("munmap");
		check(middle, 1, 0, "an unmapped page is back");
		if (mprotect(place, PAGES * PAGE, PROT_READ | PROT_WRITE))
			fail("mprotect back");
		check(place, PAGES / 2, value, "neighbours of an unmapped page change");
		fill(place, PAGES, value);
		if (round % (ROUNDS / FORKS) == 0)
			fork_once(place, shared, value);
		if (munmap(place, PAGES * PAGE))
			fail("munmap of all");
	}
	return 0;
}

/* Memory in which calls meet changes, and whether the changes are over. */
static char *area;
static volatile int is_over;

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void *change(void *nothing)
{
	uint64_t seed = 1;
	int file = syscall(SYS_memfd_create, "area", 0);
	for (int i = 0; i < CHANGES; i++) {
		uint64_t number = next(&seed);
		size_t length = (1 + number / 64 % 4) * PAGE;
		char *at = area + number / 256 % (AREA - 4) * PAGE;
		switch (number % 6) {
		case 0:
			munmap(at, length);
			break;
		case 1:
			mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, number % 4 * PAGE);
			break;
		case 2:
			mprotect(at, length, number / 8 % 4);
			break;
		case 3:
			madvise(at, length, MADV_DONTNEED);
			break;
		case 4:
			if (ftruncate(file, number / 8 % 6 * PAGE))
				fail("ftruncate");
			break;
		default:
			mmap(at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		}
	}
	is_over = 1;
	return nothing;
}

/* A call writes what it tells, or says that there is no such memory. */
static void *call(void *number)
{
	uint64_t seed = (uintptr_t)number;
	while (!is_over) {
		char *at = area + next(&seed) % (AREA * PAGE - sizeof(struct utsname));
		if (syscall(SYS_uname, at) && errno != EFAULT)
			fail("uname");
	}
	return 0;
}

/* Runs `work` in threads, with a number each. */
static void run(pthread_t *threads, int count, void *(*work)(void *))
{
	for (uintptr_t number = 0; number < (uintptr_t)count; number++)
		if (pthread_create(threads + number, 0, work, (void *)(number + 1)))
			fail("no thread");
}

int main(void)
{
	pthread_t threads[THREADS + 1];
	run(threads, THREADS, live);
	for (int number = 0; number < THREADS; number++)
		pthread_join(threads[number], 0);
	area = map(AREA, MAP_PRIVATE);
	run(threads, THREADS, call);
	run(threads + THREADS, 1, change);
	for (int number = 0; number <= THREADS; number++)
		pthread_join(threads[number], 0);
	puts("all as written");
	return 0;
}
