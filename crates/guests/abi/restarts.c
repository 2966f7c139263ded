/* A wait with a limit reaches it, whatever interrupts the wait meanwhile. */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

enum { WAIT = 0, PRIVATE = 128 };

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void nothing(int signal)
{
	(void)signal;
}

static void every(int milliseconds)
{
	struct sigaction how = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	sigaction(SIGALRM, &how, NULL);
	struct itimerval time = { { 0, milliseconds * 1000 }, { 0, milliseconds * 1000 } };
	setitimer(ITIMER_REAL, &time, NULL);
}

static long futex(double seconds)
{
	static int word;
	struct timespec limit = { 0, (long)(seconds * 1e9) };
	return syscall(SYS_futex, &word, WAIT | PRIVATE, 0, &limit, NULL, 0);
}

static void condition(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 200000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	double before = now();
	int error = pthread_cond_timedwait(&condition, &mutex, &until);
	double took = now() - before;
	say("pthread_cond_timedwait: %s, in time: %d", strerror(error), took > 0.15 && took < 2);
}

/* A child waits by `wait`, is stopped and continued again and again, and ends in time. */
static void stopped(const char *what, long (*wait)(double))
{
	pid_t child = fork();
	if (child == 0) {
		double before = now();
		long result = wait(0.6);
		double took = now() - before;
		_exit(took > 0.5 && took < 1.1 ? (result == 0 ? 0 : errno == ETIMEDOUT ? 1 : 2) : 3);
	}
	for (int i = 0; i < 4; i++) {
		usleep(100000);
		kill(child, SIGSTOP);
		waitpid(child, NULL, WUNTRACED);
		kill(child, SIGCONT);
	}
	reap(what, child);
}

static long polls(double seconds)
{
	return poll(NULL, 0, (int)(seconds * 1000));
}

static long selects(double seconds)
{
	struct timeval limit = { 0, (long)(seconds * 1e6) };
	return select(0, NULL, NULL, NULL, &limit);
}

static long sleeps(double seconds)
{
	struct timespec limit = { 0, (long)(seconds * 1e9) };
	return nanosleep(&limit, NULL);
}

int main(void)
{
	every(20);
	double before = now();
	tell("a futex with a timer", futex(0.2));
	say("at once: %d", now() - before < 0.15);
	condition();
	every(0);
	stopped("futex", futex);
	stopped("poll", polls);
	stopped("select", selects);
	stopped("nanosleep", sleeps);
	return 0;
}
