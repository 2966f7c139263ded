/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <scalevm.h>

#define CHECK(what)                                                        \
    do {                                                                   \
        if (!(what)) {                                                     \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

enum { THREADS = 8 };

/* Runs f(number) in each of THREADS threads. */
static inline void in_threads(void *(*f)(void *))
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, f, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Runs f(argument) in a thread of its own. */
static inline void *in_thread(void *(*f)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, f, argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

#endif
