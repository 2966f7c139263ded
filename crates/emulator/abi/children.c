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

int main(void)
{
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
