/*
 * What the programs of the incidents share.
 *
 * Each is a test case in will-it-scale's shape, so that `scalevm run before.c` takes it. With
 * -DTASKS=N -DREQUESTS=M it is a program of its own, to be recorded: N threads, each of which makes
 * M requests.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef REQUESTS
#define REQUESTS (~0ul)
#endif

#define KB 1024ul
#define MB (1024 * KB)
#define GB (1024 * MB)
#define PAGE (4 * KB)

extern char *testcase_description;
void testcase(unsigned long long *iterations, unsigned long nr);
__attribute__((weak)) void testcase_prepare(unsigned long tasks);

/* Each of `requests` requests of a task, and each of those that the incident counts. */
#define EACH(requests, iterations) \
    for (unsigned long request = 0; request < (requests); request++, (*(iterations))++)
#define EACH_REQUEST(iterations) EACH(REQUESTS, iterations)

/* The calling thread's part in the story; recordings tell threads apart by their names. */
static inline void role(const char *name)
{
    prctl(PR_SET_NAME, name);
}

static inline char *map(size_t length, int rights)
{
    char *at = mmap(NULL, length, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(at != MAP_FAILED);
    return at;
}

/* Writes to each page. */
static inline void touch(char *at, size_t length)
{
    for (size_t page = 0; page < length; page += PAGE)
        ((volatile char *)at)[page] = 1;
}

/* Computes for about this time at 3 GHz: each step waits for the one before, for five cycles. */
static inline void compute(unsigned long microseconds)
{
    unsigned long number = 1;
    for (unsigned long step = 0; step < microseconds * 600; step++) {
        number = (number ^ number >> 29) * 0x5851f42d4c957f2dul;
        __asm__ volatile("" : "+r"(number));
    }
}

static inline void done(int result)
{
    assert(result == 0);
}

#ifdef TASKS
static void *task(void *nr)
{
    unsigned long long iterations = 0;
    role("worker");
    testcase(&iterations, (unsigned long)nr);
    return NULL;
}

int main(void)
{
    pthread_t threads[TASKS];
    if (testcase_prepare)
        testcase_prepare(TASKS);
    for (unsigned long nr = 0; nr < TASKS; nr++)
        done(pthread_create(&threads[nr], NULL, task, (void *)nr));
    for (unsigned long nr = 0; nr < TASKS; nr++)
        done(pthread_join(threads[nr], NULL));
    return 0;
}
#endif
