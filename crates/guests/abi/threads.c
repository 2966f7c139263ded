/* Threads: their stacks and own data, locks, conditions, and the end of some or all. */
#include "abi.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { COUNT = 8, ROUNDS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long guarded, turn;
static _Atomic long atomic_sum;
static _Thread_local long own;
static sem_t started;

static void *add(void *number)
{
	own = (intptr_t)number;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		guarded++;
		pthread_mutex_unlock(&lock);
		atomic_sum++;
	}
	return (void *)(own * own);
}

/* Threads speak in turn. */
static void *speak(void *number)
{
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&lock);
		while (turn % COUNT != (intptr_t)number)
			pthread_cond_wait(&changed, &lock);
		if (i == 2)
			say("thread %ld", (long)number);
		turn++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static long run(void *(*body)(void *))
{
	pthread_t thread[COUNT];
	long sum = 0;
	for (long i = 0; i < COUNT; i++)
		need(pthread_create(&thread[i], NULL, body, (void *)i) == 0, "pthread_create");
	for (long i = 0; i < COUNT; i++) {
		void *result = NULL;
		need(pthread_join(thread[i], &result) == 0, "pthread_join");
		sum += (intptr_t)result;
	}
	return sum;
}

static void *wait_for_ever(void *nothing)
{
	sem_post(&started);
	for (;;)
		pause();
	return nothing;
}

static void *leave_all(void *nothing)
{
	exit(11);
	return nothing;
}

static int end_by_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, leave_all, NULL);
	for (;;)
		pause();
	return 0;
}

static int end_beside_threads(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, wait_for_ever, NULL);
	sem_wait(&started);
	return 12;
}

static void *last(void *nothing)
{
	usleep(20000);
	say("the last thread");
	return nothing;
}

int main(void)
{
	sem_init(&started, 0, 0);
	long squares = run(add);
	say("results %ld, guarded %ld, atomic %ld, own data %ld", squares, guarded, (long)atomic_sum, own);
	run(speak);
	pthread_t thread;
	void *result;
	need(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0, "pthread_create");
	sem_wait(&started);
	say("cancel: %d", pthread_cancel(thread));
	pthread_join(thread, &result);
	say("cancelled: %d", result == PTHREAD_CANCELED);
	reap("a thread exits", spawn(end_by_thread));
	reap("exit while a thread runs", spawn(end_beside_threads));
	for (int i = 0; i < 200; i++) {
		need(pthread_create(&thread, NULL, add, (void *)0) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
	say("200 more, one after the other: %ld", guarded);
	/* The process lives until its last thread ends. Not in a child: musl 1.2.3 hangs there. */
	pthread_create(&thread, NULL, last, NULL);
	pthread_exit(NULL);
}
