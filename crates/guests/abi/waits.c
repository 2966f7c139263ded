/* Waits with a limit: many that end early, and some that reach it. */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

enum { WAIT = 0, WAKE = 1, PRIVATE = 128, ROUNDS = 6000 };

static const struct timespec hour = { 3600, 0 };
static _Atomic int turn;

/* Two threads take turns; each wait could last an hour. */
static void take_turns(int mine)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (turn != mine)
			syscall(SYS_futex, &turn, WAIT | PRIVATE, !mine, &hour, NULL, 0);
		turn = !mine;
		syscall(SYS_futex, &turn, WAKE | PRIVATE, 1, NULL, NULL, 0);
	}
}

static void *other(void *nothing)
{
	take_turns(1);
	return nothing;
}

static void futexes(void)
{
	pthread_t thread;
	need(pthread_create(&thread, NULL, other, NULL) == 0, "pthread_create");
	take_turns(0);
	pthread_join(thread, NULL);
	say("all turns are taken");
}

/* A child answers each byte, so every poll waits, and ends early. */
static void polls(void)
{
	int there[2], back[2];
	need(pipe(there) == 0 && pipe(back) == 0, "pipe");
	char byte = 'x';
	pid_t child = fork();
	if (child == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			need(write(back[1], &byte, 1) == 1, "write");
		_exit(0);
	}
	close(there[0]);
	struct pollfd wanted = { back[0], POLLIN, 0 };
	for (int i = 0; i < ROUNDS; i++) {
		need(write(there[1], &byte, 1) == 1, "write");
		need(poll(&wanted, 1, 3600000) == 1, "poll");
		need(read(back[0], &byte, 1) == 1, "read");
	}
	close(there[1]);
	reap("child", child);
	tell("nothing comes", poll(&wanted, 1, 10));
	close(back[0]);
	close(back[1]);
}

static void *wait_long(void *nothing)
{
	poll(NULL, 0, 3600000);
	return nothing;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* A short wait is not delayed by a longer one that began before it, nor by one that is over. */
static void short_and_long(void)
{
	pthread_t thread;
	need(pthread_create(&thread, NULL, wait_long, NULL) == 0, "pthread_create");
	usleep(20000);
	double before = now();
	for (int i = 10; i > 0; i--) {
		struct timespec limit = { 0, i * 1000000 };
		syscall(SYS_futex, &turn, WAIT | PRIVATE, turn, &limit, NULL, 0);
	}
	double took = now() - before;
	say("as long as they should: %s", took >= 0.055 && took < 2 ? "yes" : "no");
}

static volatile sig_atomic_t rung;

static void ring(int signal)
{
	rung = signal;
}

/* An alarm that is set anew comes at the new time. */
static void alarms(void)
{
	signal(SIGALRM, ring);
	for (int i = 0; i < ROUNDS; i++)
		alarm(3600 + i);
	say("set before: %u", alarm(3600));
	struct itimerval soon = { { 0, 0 }, { 0, 20000 } };
	double before = now();
	setitimer(ITIMER_REAL, &soon, NULL);
	while (!rung)
		pause();
	double took = now() - before;
	say("rings: %d, in time: %s", rung, took >= 0.02 && took < 2 ? "yes" : "no");
	/* Children leave alarms behind. */
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		if (child == 0) {
			alarm(3600);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	say("no alarm is left: %u", alarm(0));
}

int main(void)
{
	futexes();
	polls();
	alarms();
	short_and_long();
	return 0;
}
