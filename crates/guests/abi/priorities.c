/* Priorities: all processes begin with the usual one. */
#include "abi.h"
#include <sched.h>
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
	struct sched_param parameter = { .sched_priority = 9 };
	for (int policy = 0; policy < 7; policy++)
		say("policy %d: %d to %d", policy, sched_get_priority_min(policy), sched_get_priority_max(policy));
	/* musl's functions for the others always fail. */
	say("own policy: %ld", syscall(SYS_sched_getscheduler, 0));
	tell("no thread's", syscall(SYS_sched_getscheduler, -1));
	tell("nobody's", syscall(SYS_sched_getscheduler, child));
	tell("own parameter", syscall(SYS_sched_getparam, 0, &parameter));
	say("it is %d", parameter.sched_priority);
	tell("set the usual policy", syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &parameter));
	tell("set the parameter", syscall(SYS_sched_setparam, 0, &parameter));
	parameter.sched_priority = 1;
	tell("no such priority", syscall(SYS_sched_setparam, 0, &parameter));
	tell("no such policy", syscall(SYS_sched_setscheduler, 0, 77, &parameter));
	tell("from nowhere", syscall(SYS_sched_setparam, 0, nowhere));
	say("as the call returns it: %ld", syscall(SYS_getpriority, PRIO_PROCESS, 0));
	return 0;
}
