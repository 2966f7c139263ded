/* Other ways to make children and to wait for them. */
#include "abi.h"
#include <stdint.h>
#include <sys/syscall.h>

static void show(const char *what, int result, siginfo_t *info, pid_t child)
{
	if (result < 0) {
		tell(what, -1);
		return;
	}
	say("%s: signal %d, code %d, the child %d, status %d", what, info->si_signo, info->si_code,
	    child && info->si_pid == child, info->si_status);
}

static int five(void)
{
	return 5;
}

static int dies(void)
{
	kill(getpid(), SIGTERM);
	return 0;
}

static int waits(void)
{
	pause();
	return 0;
}

static volatile int heard, found;

static void hear(int signal UNUSED)
{
	heard++;
}

static void find(int signal UNUSED)
{
	heard++;
	found += waitpid(-1, NULL, WNOHANG) > 0;
}

/* The end of a child and its signal come at once: a wait that reports the end returns after the signal's handler, and the
 * handler finds that the child has ended. */
static void ends_with_a_signal(void)
{
	enum { CHILDREN = 500 };
	int late = 0;
	signal(SIGCHLD, hear);
	for (int i = 1; i <= CHILDREN; i++) {
		pid_t child = spawn(five);
		int options = i % 2 ? WNOHANG : 0;
		while (waitpid(child, NULL, options) != child)
			;
		late += heard != i;
	}
	say("signals after the wait: %d", late);
	signal(SIGCHLD, find);
	heard = 0;
	for (int i = 1; i <= CHILDREN; i++) {
		spawn(five);
		while (heard != i)
			;
	}
	say("children that the handler missed: %d", CHILDREN - found);
	signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
	ends_with_a_signal();
	siginfo_t info = { 0 };
	tell("no child", waitid(P_ALL, 0, &info, WEXITED));
	pid_t child = spawn(five);
	show("exit", waitid(P_PID, child, &info, WEXITED), &info, child);
	tell("once", waitid(P_PID, child, &info, WEXITED));
	child = spawn(dies);
	show("signal", waitid(P_ALL, 0, &info, WEXITED), &info, child);
	child = spawn(waits);
	memset(&info, 0, sizeof info);
	show("not yet", waitid(P_PID, child, &info, WEXITED | WNOHANG), &info, child);
	kill(child, SIGKILL);
	show("killed", waitid(P_PID, child, &info, WEXITED), &info, child);
	tell("nothing to wait for", waitid(P_ALL, 0, &info, 0));
	tell("nonsense", waitid(99, 0, &info, WEXITED));

	uint64_t words[11] = { 0 };
	words[4] = SIGCHLD;
	pid_t made = syscall(435, words, 64);
	if (made == 0)
		_exit(7);
	need(made > 0, "clone3");
	reap("clone3", made);
	tell("short", syscall(435, words, 56));
	tell("bad address", syscall(435, nowhere, 64));
	words[4] = 65;
	tell("bad signal", syscall(435, words, 64));
	words[4] = SIGCHLD;
	words[5] = 4096;
	tell("a stack without a size", syscall(435, words, 64));
	uint64_t longer[12] = { 0 };
	longer[11] = 1;
	tell("unknown arguments", syscall(435, longer, 96));
	return 0;
}
