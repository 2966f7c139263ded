/* Signals that are queued, waited for, and sent with a value. */
#include "abi.h"
#include <sys/syscall.h>
#include <time.h>

static void told(int number, siginfo_t *info, void *context)
{
	(void)context;
	say("real-time signal %d, code %d, value %d", number - SIGRTMIN, info->si_code, info->si_value.sival_int);
}

static long wait_for(const sigset_t *set, long milliseconds)
{
	struct timespec limit = { 0, milliseconds * 1000000 };
	siginfo_t info;
	int number = sigtimedwait(set, &info, &limit);
	if (number > 0)
		say("taken: code %d, from this process: %d", info.si_code, info.si_pid == getpid());
	return number;
}

static int signal_parent(void)
{
	usleep(20000);
	return kill(getppid(), SIGUSR1);
}

int main(void)
{
	sigset_t all, old, pending;
	sigemptyset(&all);
	for (int i = 0; i < 3; i++) {
		struct sigaction how = { .sa_sigaction = told, .sa_flags = SA_SIGINFO };
		sigfillset(&how.sa_mask);
		sigaction(SIGRTMIN + i, &how, NULL);
		sigaddset(&all, SIGRTMIN + i);
	}
	sigaddset(&all, SIGUSR1);
	sigaddset(&all, SIGUSR2);
	sigprocmask(SIG_BLOCK, &all, &old);
	for (int i = 0; i < 6; i++)
		tell("queue", sigqueue(getpid(), SIGRTMIN + 2 - i % 3, (union sigval){ i }));
	sigpending(&pending);
	say("pending: %d", sigismember(&pending, SIGRTMIN));
	sigprocmask(SIG_SETMASK, &old, NULL);
	sigprocmask(SIG_BLOCK, &all, NULL);
	tell("nothing comes", wait_for(&all, 10));
	tell("nothing is there", wait_for(&all, 0));
	kill(getpid(), SIGUSR1);
	say("there already: %d", wait_for(&all, 0) == SIGUSR1);
	pid_t child = spawn(signal_parent);
	say("waited for: %d", wait_for(&all, 5000) == SIGUSR1);
	reap("child", child);
	/* Ignored ones are kept for who waits. */
	signal(SIGUSR2, SIG_IGN);
	kill(getpid(), SIGUSR2);
	say("ignored, but held: %d", wait_for(&all, 0) == SIGUSR2);
	tell("to a thread", syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1));
	say("taken from there: %d", wait_for(&all, 0) == SIGUSR1);
	tell("no such thread", syscall(SYS_tgkill, getpid(), 999999, SIGUSR1));
	tell("no thread", syscall(SYS_tgkill, getpid(), 0, SIGUSR1));
	siginfo_t forged = { .si_signo = SIGUSR1, .si_code = SI_USER };
	tell("forged for another", syscall(SYS_rt_sigqueueinfo, getppid(), SIGUSR1, &forged));
	return 0;
}
