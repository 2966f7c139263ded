/* futex, by system calls. */
#include "abi.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

enum { WAIT = 0, WAKE = 1, REQUEUE = 3, CMP_REQUEUE = 4, PRIVATE = 128 };

static _Atomic int word;
static _Atomic int woken, waiting;

static long futex(_Atomic int *at, int operation, int value, const struct timespec *limit)
{
	return syscall(SYS_futex, at, operation, value, limit, NULL, 0);
}

static void *sleep_on(void *nothing)
{
	waiting++;
	while (word == 0)
		futex(&word, WAIT | PRIVATE, 0, NULL);
	woken++;
	return nothing;
}

static _Atomic int first, second;

static void *wait_once(void *nothing)
{
	futex(&first, WAIT | PRIVATE, 0, NULL);
	return nothing;
}

/* Waiters are moved to another word, and wait there only. */
static void moves(void)
{
	pthread_t thread[4];
	for (int i = 0; i < 4; i++)
		need(pthread_create(&thread[i], NULL, wait_once, NULL) == 0, "pthread_create");
	usleep(50000);
	tell("another value", syscall(SYS_futex, &first, CMP_REQUEUE | PRIVATE, 1, 1, &second, 5));
	say("one woken, two moved: %ld", syscall(SYS_futex, &first, CMP_REQUEUE | PRIVATE, 1, 2, &second, 0));
	say("left: %ld", futex(&first, WAKE | PRIVATE, 100, NULL));
	say("moved back: %ld", syscall(SYS_futex, &second, REQUEUE | PRIVATE, 0, 1, &first, 0));
	say("there: %ld, here: %ld", futex(&second, WAKE | PRIVATE, 100, NULL), futex(&first, WAKE | PRIVATE, 100, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	struct timespec limit = { 0, 10000000 };
	tell("another value", futex(&word, WAIT, 5, NULL));
	tell("time is up", futex(&word, WAIT, 0, &limit));
	say("nobody to wake: %ld", futex(&word, WAKE, 1, NULL));
	tell("not aligned", futex((_Atomic int *)((char *)&word + 1), WAIT, 0, NULL));
	tell("no address", futex((_Atomic int *)nowhere, WAIT, 0, NULL));
	tell("unknown", futex(&word, 99, 0, NULL));
	tell("moved nowhere", syscall(SYS_futex, &word, REQUEUE, 1, 1, nowhere, 0));
	char *hidden = map(1, PROT_NONE, MAP_SHARED);
	tell("moved where nothing can be read", syscall(SYS_futex, &word, CMP_REQUEUE, 1, 1, hidden, 0));
	pthread_t thread[3];
	for (int i = 0; i < 3; i++)
		need(pthread_create(&thread[i], NULL, sleep_on, NULL) == 0, "pthread_create");
	while (waiting < 3)
		usleep(1000);
	usleep(20000);
	say("woken although nothing changed: %ld", futex(&word, WAKE | PRIVATE, 1, NULL));
	usleep(20000);
	say("they sleep again: %d", woken);
	word = 1;
	futex(&word, WAKE | PRIVATE, 100, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	say("woken: %d", woken);
	moves();
	/* One that two processes share is one, though each has its own address. */
	_Atomic int *shared = (_Atomic int *)map(1, PROT_READ | PROT_WRITE, MAP_SHARED);
	pid_t child = fork();
	if (child == 0) {
		while (shared[0] == 0)
			futex(shared, WAIT, 0, NULL);
		_exit(shared[0]);
	}
	usleep(20000);
	shared[0] = 8;
	futex(shared, WAKE, 1, NULL);
	reap("child", child);
	return 0;
}
