/* How programs measure one operation: exactly, or by the second.
 *
 * Without arguments a program takes SAMPLES samples with the time-stamp counter and prints
 *
 *	exact NAME MIN MEDIAN
 *
 * Under `-icount` the counter counts the guest's instructions. With the arguments `rate TASKS MILLISECONDS` it runs
 * rounds in that many tasks at once and prints
 *
 *	rate NAME TASKS OPERATIONS_A_SECOND
 *
 * TASKS is also how many threads or processes there are: a program says which by its `struct subject`. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 1000, MAX_TASKS = 64, LINE = 64, PAGE = 4096 };

struct subject {
	const char *name;
	/* Takes sample `index`; its length, by `now`. Without it a sample is a round, of one operation. */
	uint64_t (*sample)(int index);
	/* Performs operations; how many. */
	unsigned (*round)(void);
	/* Whether tasks have an address space each. */
	int processes;
};

static inline uint64_t now(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/* A system call by itself, without what a C library does around it. */
static inline long ask(long number, long a, long b, long c)
{
	long answer = number;
	__asm__ volatile("syscall" : "+a"(answer) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return answer;
}

/* Ends the program, unless the call that `what` names has succeeded. */
static void check(int good, const char *what)
{
	if (good)
		return;
	dprintf(2, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

static inline char *map(size_t length)
{
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(at != MAP_FAILED, "mmap");
	return at;
}

/* Waits for a child, which must have ended well. */
static inline void reap(pid_t child)
{
	int status;
	check(waitpid(child, &status, 0) == child && status == 0, "the child");
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The length of a round. */
static uint64_t one_round(const struct subject *subject)
{
	uint64_t start = now();
	subject->round();
	return now() - start;
}

static void exact(const struct subject *subject)
{
	static uint64_t taken[SAMPLES];
	uint64_t empty = now();
	empty = now() - empty;
	for (int i = 0; i < SAMPLES; i++)
		taken[i] = (subject->sample ? subject->sample(i) : one_round(subject)) - empty;
	qsort(taken, SAMPLES, sizeof *taken, ascending);
	printf("exact %s %llu %llu\n", subject->name, (unsigned long long)taken[0],
	       (unsigned long long)taken[SAMPLES / 2]);
}

/* What tasks share: how many are ready, the end, and a line for each one's count. */
struct shared {
	_Atomic int ready, over;
	struct { _Alignas(LINE) _Atomic uint64_t done; } task[MAX_TASKS];
};

static struct shared *shared;
static const struct subject *measured;

static void *work(void *number)
{
	_Atomic uint64_t *done = &shared->task[(intptr_t)number].done;
	shared->ready++;
	while (!shared->over)
		*done += measured->round();
	return NULL;
}

static void begin(int task)
{
	pthread_t thread;
	if (!measured->processes) {
		check(pthread_create(&thread, NULL, work, (void *)(intptr_t)task) == 0, "pthread_create");
		return;
	}
	pid_t child = fork();
	check(child >= 0, "fork");
	if (child == 0) {
		work((void *)(intptr_t)task);
		_exit(0);
	}
}

static uint64_t total(int tasks)
{
	uint64_t sum = 0;
	for (int i = 0; i < tasks; i++)
		sum += shared->task[i].done;
	return sum;
}

static double seconds(void)
{
	struct timespec time;
	check(clock_gettime(CLOCK_MONOTONIC, &time) == 0, "clock_gettime");
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void rate(const struct subject *subject, int tasks, long milliseconds)
{
	measured = subject;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED, "mmap");
	for (int i = 0; i < tasks; i++)
		begin(i);
	struct timespec span = { milliseconds / 1000, milliseconds % 1000 * 1000000 }, moment = { 0, 1000000 };
	while (shared->ready < tasks)
		nanosleep(&moment, NULL);
	double start = seconds();
	uint64_t before = total(tasks);
	nanosleep(&span, NULL);
	uint64_t done = total(tasks) - before;
	double length = seconds() - start;
	shared->over = 1;
	printf("rate %s %d %.0f\n", subject->name, tasks, done / length);
}

static int measure(const struct subject *subject, int count, char **arguments)
{
	if (count == 1)
		exact(subject);
	else if (count == 4 && subject->round && atoi(arguments[2]) <= MAX_TASKS)
		rate(subject, atoi(arguments[2]), atol(arguments[3]));
	else
		return 2;
	fflush(stdout);
	_exit(0);
}
