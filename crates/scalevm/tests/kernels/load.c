/* Loads whose trouble is known, by name, on some threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, SMALL = 64 * PAGE, FAULTED = 256 * PAGE, FORKED = 8192 * PAGE };

#define ROLE __attribute__((noinline)) static

static char *memory(size_t size)
{
	char *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		abort();
	return all;
}

/* Maps, touches and unmaps. */
ROLE void *maps(void *unused)
{
	for (;;) {
		char *all = memory(SMALL);
		for (size_t at = 0; at < SMALL; at += 8 * PAGE)
			all[at] = 1;
		munmap(all, SMALL);
	}
	return unused;
}

/* Changes the protection of a page inside a mapping, which splits the mapping, and back. */
ROLE void *protects(void *unused)
{
	char *all = memory(SMALL);
	for (;;) {
		mprotect(all + SMALL / 2, PAGE, PROT_READ);
		mprotect(all + SMALL / 2, PAGE, PROT_READ | PROT_WRITE);
	}
	return unused;
}

/* Faults in memory, and gives it back. */
ROLE void *faults(void *unused)
{
	char *all = memory(FAULTED);
	for (;;) {
		for (size_t at = 0; at < FAULTED; at += PAGE)
			all[at] = 1;
		madvise(all, FAULTED, MADV_DONTNEED);
	}
	return unused;
}

/* Forks with much memory. */
ROLE void *forks(void *unused)
{
	memset(memory(FORKED), 1, FORKED);
	for (;;) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	return unused;
}

pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

/* Computes with the mutex. */
ROLE void critical(void)
{
	pthread_mutex_lock(&the_lock);
	for (volatile int round = 0; round < 20000; round++)
		;
	pthread_mutex_unlock(&the_lock);
}

ROLE void *locks(void *unused)
{
	for (;;)
		critical();
	return unused;
}

static const struct {
	const char *name;
	void *(*first)(void *), *(*others)(void *);
} loads[] = {
	{ "maps", maps, maps },
	{ "protects", protects, protects },
	{ "forks", forks, faults },
	{ "locks", locks, locks },
};

int main(int count, char **words)
{
	for (size_t i = 0; count == 3 && i < sizeof loads / sizeof *loads; i++) {
		if (strcmp(words[1], loads[i].name) != 0)
			continue;
		pthread_t thread;
		for (int threads = 0; threads < atoi(words[2]); threads++)
			pthread_create(&thread, NULL, threads ? loads[i].others : loads[i].first, NULL);
		pause();
	}
	return 2;
}
