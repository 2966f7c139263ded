/* Priorities: all processes begin with the usual one. */
#include "abi.h"
#include <sys/resource.h>
#include <sys/syscall.h>

static void priority(const char *what, int which, int who)
{
	errno = 0;
	int nice = getpriority(which, who);
	if (errno)
		tell(what, -1);
	else
		say("%s: %d", what, nice);
}

static int sleeps(void)
{
	pause();
	return 0;
}

int main(void)
{
	priority("own", PRIO_PROCESS, 0);
	priority("the group's", PRIO_PGRP, 0);
	priority("the group's, by number", PRIO_PGRP, getpgrp());
	pid_t child = spawn(sleeps);
	priority("the child's", PRIO_PROCESS, child);
	tell("set the child's", setpriority(PRIO_PROCESS, child, 0));
	kill(child, SIGKILL);
	reap("child", child);
	priority("nobody's", PRIO_PROCESS, child);
	tell("set nobody's", setpriority(PRIO_PROCESS, child, 0));
	priority("no group's", PRIO_PGRP, 1 << 29);
	priority("no user's", PRIO_USER, 1 << 29);
	priority("of no kind", 3, 0);
	tell("set of no kind", setpriority(3, 0, 0));
	tell("set the usual one", setpriority(PRIO_PROCESS, 0, 0));
	tell("set the group's", setpriority(PRIO_PGRP, 0, 0));
	say("as the call returns it: %ld", syscall(SYS_getpriority, PRIO_PROCESS, 0));
	return 0;
}
