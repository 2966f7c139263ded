/* Signals that a program holds back and waits for come, also those that are ignored. */
#include "abi.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

static sigset_t set(int one, int other)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, one);
	sigaddset(&set, other);
	return set;
}

static void wait_for(const char *what, const sigset_t *set)
{
	struct timespec limit = { 5, 0 };
	int signal = sigtimedwait(set, NULL, &limit);
	say("%s: %s", what, signal < 0 ? strerror(errno) : strsignal(signal));
}

static int later(void)
{
	usleep(50000);
	return 3;
}

static int sends(int signal)
{
	usleep(50000);
	kill(getppid(), signal);
	usleep(100000);
	return 0;
}

static int resizes(void)
{
	return sends(SIGWINCH);
}

static int uses(void)
{
	return sends(SIGUSR1);
}

static void *waits(void *nothing)
{
	sigset_t child = set(SIGCHLD, SIGCHLD);
	wait_for("in another thread", &child);
	return nothing;
}

static volatile int handled;

static void handle(int signal)
{
	handled = signal;
}

int main(void)
{
	sigset_t child = set(SIGCHLD, SIGWINCH), user = set(SIGUSR1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &child, NULL);
	pid_t pid = spawn(later);
	wait_for("a child that ends", &child);
	reap("it", pid);
	pid = spawn(resizes);
	wait_for("ignored by default", &child);
	reap("its sender", pid);
	/* The end of the sender is told, too. */
	wait_for("then", &child);
	sigprocmask(SIG_BLOCK, &user, NULL);
	signal(SIGUSR1, SIG_IGN);
	pid = spawn(uses);
	wait_for("ignored", &user);
	reap("its sender", pid);
	wait_for("then", &child);
	pthread_t id;
	need(pthread_create(&id, NULL, waits, NULL) == 0, "pthread_create");
	usleep(20000);
	pid = spawn(later);
	pthread_join(id, NULL);
	reap("a child", pid);
	/* Another signal's handler ends the wait; the one that is held back stays so. */
	signal(SIGUSR2, handle);
	signal(SIGUSR1, handle);
	pid = fork();
	if (pid == 0) {
		usleep(50000);
		kill(getppid(), SIGUSR2);
		_exit(0);
	}
	wait_for("another one", &user);
	say("handled: %d", handled == SIGUSR2);
	reap("its sender", pid);
	return 0;
}
