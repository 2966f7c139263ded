/* fork and wait: who is whose child, and how children end. */
#include "abi.h"

static pid_t parent;
static int code, gate[2], over[2];

static int knows_parent(void)
{
	return getppid() == parent && getpid() != parent;
}

static int leave(void)
{
	return code;
}

static int die(void)
{
	signal(code, SIG_DFL);
	raise(code);
	return 0;
}

static int sleep_on(void)
{
	for (;;)
		pause();
	return 0;
}

static int grandchild_of_the_dead(void)
{
	pid_t father = getpid();
	if (fork() == 0) {
		while (getppid() == father)
			usleep(1000);
		char byte;
		close(gate[1]);
		_exit(read(gate[0], &byte, 1) != 0 || write(1, "the orphan has another parent\n", 30) != 30);
	}
	return 5;
}

static void statuses(void)
{
	for (code = 0; code < 300; code += 51)
		reap("child", spawn(leave));
	int fatal[] = { SIGKILL, SIGTERM, SIGSEGV, SIGABRT, SIGFPE, SIGUSR1 };
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
		code = fatal[i];
		reap("child", spawn(die));
	}
}

static void waiting(void)
{
	tell("no children", wait(NULL));
	pid_t sleeper = spawn(sleep_on);
	say("nobody has ended: %d", waitpid(-1, NULL, WNOHANG));
	tell("not a child", waitpid(getpid(), NULL, 0));
	code = 4;
	pid_t quick = spawn(leave);
	int status;
	say("the one that ends: %d", wait(&status) == quick);
	ended("it", status);
	tell("kill", kill(sleeper, SIGKILL));
	say("the other: %d", wait(&status) == sleeper);
	ended("it", status);
	tell("kill the dead", kill(sleeper, 0));
}

static void crowd(void)
{
	enum { COUNT = 40 };
	pid_t child[COUNT];
	for (code = 0; code < COUNT; code++)
		child[code] = spawn(leave);
	int sum = 0;
	for (int i = COUNT - 1; i >= 0; i--) {
		int status;
		need(waitpid(child[i], &status, 0) == child[i], "waitpid");
		sum += WEXITSTATUS(status);
	}
	say("sum of %d codes: %d", COUNT, sum);
}

int main(void)
{
	parent = getpid();
	say("self: %d", parent > 0 && kill(parent, 0) == 0);
	reap("child knows its parent", spawn(knows_parent));
	statuses();
	waiting();
	crowd();
	/* The orphan speaks when the gate is closed, and keeps the other pipe open until it is done. */
	char byte;
	need(pipe(gate) == 0 && pipe(over) == 0, "pipe");
	reap("father", spawn(grandchild_of_the_dead));
	close(gate[1]);
	close(over[1]);
	say("end of the orphan: %zd", read(over[0], &byte, 1));
	return 0;
}
