/* Children that outlive their parents: stopped ones go on, reapers get them, and who waits in vfork can be ended. */
#include "abi.h"
#include <sys/prctl.h>

static int ends[2];

static void handle(int signal)
{
	(void)signal;
}

/* A stopped child in a group of its own is continued when its parent ends. */
static void stopped(void)
{
	need(pipe(ends) == 0, "pipe");
	pid_t child = fork();
	if (child == 0) {
		if (fork() == 0) {
			setpgid(0, 0);
			signal(SIGHUP, handle);
			close(ends[0]);
			raise(SIGSTOP);
			_exit(write(ends[1], "c", 1) != 1);
		}
		usleep(100000);
		_exit(0);
	}
	close(ends[1]);
	reap("parent of a stopped child", child);
	char byte = 0;
	say("the child goes on: %d", (int)read(ends[0], &byte, 1));
	close(ends[0]);
}

static int grandchild(int code)
{
	if (fork() == 0) {
		usleep(50000);
		_exit(code);
	}
	return 0;
}

static int five(void)
{
	return grandchild(5);
}

static int six(void)
{
	return grandchild(6);
}

static int reaper(void)
{
	int is_reaper = 7;
	tell("reaper", prctl(PR_SET_CHILD_SUBREAPER, 1));
	prctl(PR_GET_CHILD_SUBREAPER, &is_reaper);
	say("it is one: %d", is_reaper);
	reap("child", spawn(five));
	int status = 0;
	pid_t orphan = waitpid(-1, &status, 0);
	say("the orphan is its child: %d", orphan > 0);
	ended("it", status);
	return 0;
}

/* The nearest reaper gets the orphan; one that inherits from a reaper is none. */
static int nested(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t middle = fork();
	if (middle == 0) {
		int is_reaper = 7;
		prctl(PR_GET_CHILD_SUBREAPER, &is_reaper);
		say("inherited: %d", is_reaper);
		waitpid(spawn(six), NULL, 0);
		_exit(waitpid(-1, NULL, 0) == -1 && errno == ECHILD ? 0 : 1);
	}
	reap("child of a reaper", middle);
	int status = 0;
	waitpid(-1, &status, 0);
	ended("orphan", status);
	return 0;
}

/* A parent goes on when its child runs another program. */
static void borrows(const char *what)
{
	need(pipe(ends) == 0, "pipe");
	pid_t parent = fork();
	if (parent == 0) {
		if (vfork() == 0) {
			close(ends[0]);
			write(ends[1], "x", 1);
			execl("/proc/self/exe", "sleeper", "sleeper", NULL);
			_exit(1);
		}
		_exit(9);
	}
	close(ends[1]);
	char byte;
	need(read(ends[0], &byte, 1) == 1, "read");
	close(ends[0]);
	reap(what, parent);
}

/* A signal that ends a process does so while it waits in vfork. */
static void waits_in_vfork(void)
{
	need(pipe(ends) == 0, "pipe");
	pid_t parent = fork();
	if (parent == 0) {
		if (vfork() == 0) {
			pid_t me = getpid();
			write(ends[1], &me, sizeof me);
			for (;;)
				usleep(10000);
		}
		_exit(9);
	}
	pid_t child = 0;
	need(read(ends[0], &child, sizeof child) == sizeof child, "read");
	usleep(50000);
	kill(parent, SIGTERM);
	reap("who waits in vfork", parent);
	kill(child, SIGKILL);
}

int main(int count, char **arguments)
{
	(void)arguments;
	if (count > 1)
		return 0;
	stopped();
	reap("reaper", spawn(reaper));
	reap("reapers", spawn(nested));
	borrows("who ran another program in vfork");
	waits_in_vfork();
	return 0;
}
