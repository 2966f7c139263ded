/* Locks on parts of files. */
#include "abi.h"

static int file;

static long lock(int command, int kind, long start, long length)
{
	struct flock how = { .l_type = kind, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
	return fcntl(file, command, &how);
}

/* What is in the way of a lock. */
static void ask(const char *what, int kind, long start, long length)
{
	struct flock how = { .l_type = kind, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
	need(fcntl(file, F_GETLK, &how) == 0, "F_GETLK");
	if (how.l_type == F_UNLCK)
		say("%s: nothing", what);
	else
		say("%s: %s from %ld, %ld bytes, the parent's: %d", what, how.l_type == F_WRLCK ? "alone" : "shared",
		    (long)how.l_start, (long)how.l_len, how.l_pid == getppid());
}

static int try(void)
{
	ask("first part", F_RDLCK, 0, 10);
	ask("a part of it", F_WRLCK, 5, 1);
	ask("behind it", F_WRLCK, 10, 5);
	ask("shared with shared", F_RDLCK, 22, 3);
	ask("exclusive with shared", F_WRLCK, 22, 3);
	ask("the hole", F_WRLCK, 112, 3);
	ask("without end", F_WRLCK, 1000, 0);
	tell("take what is taken", lock(F_SETLK, F_RDLCK, 0, 1));
	tell("take what is shared", lock(F_SETLK, F_RDLCK, 20, 2));
	tell("take what is free", lock(F_SETLK, F_WRLCK, 12, 3));
	return 0;
}

static int wait_for(void)
{
	tell("wait", lock(F_SETLKW, F_WRLCK, 0, 10));
	return 3;
}

/* Waits for a lock that waits for its own. */
static int circle(void)
{
	struct sigaction how = { .sa_handler = SIG_DFL };
	sigaction(SIGALRM, &how, NULL);
	alarm(10);
	lock(F_SETLKW, F_WRLCK, 700, 1);
	tell("child waits", lock(F_SETLKW, F_WRLCK, 600, 1));
	return 0;
}

static int ask_joined(void)
{
	ask("joined", F_WRLCK, 800, 1);
	ask("many", F_WRLCK, 1000000, 1);
	ask("between them", F_WRLCK, 1000001, 1);
	ask("the last", F_WRLCK, 1009998, 100);
	return 0;
}

/* Neighbours are one lock, and many locks are found by their places. */
static void many(void)
{
	lock(F_SETLK, F_WRLCK, 800, 5);
	lock(F_SETLK, F_WRLCK, 805, 5);
	lock(F_SETLK, F_RDLCK, 810, 5);
	enum { COUNT = 5000 };
	int failed = 0;
	for (int i = 0; i < COUNT; i++)
		failed += lock(F_SETLK, F_WRLCK, 1000000 + 2 * i, 1) != 0;
	say("many: %d failed", failed);
	reap("child", spawn(ask_joined));
	tell("none of them", lock(F_SETLK, F_UNLCK, 1000000, 0));
	tell("cut", lock(F_SETLK, F_UNLCK, 803, 4));
	reap("child", spawn(ask_joined));
}

static void nothing(int number)
{
	(void)number;
}

static int interrupted(void)
{
	struct sigaction how = { .sa_handler = nothing };
	sigaction(SIGALRM, &how, NULL);
	alarm(1);
	tell("interrupted", lock(F_SETLKW, F_WRLCK, 100, 1));
	return 0;
}

static int close_other(void)
{
	lock(F_SETLKW, F_WRLCK, 500, 1);
	close(open("file", O_RDWR));
	usleep(50000);
	return 0;
}

int main(void)
{
	enter_folder();
	file = open("file", O_CREAT | O_RDWR, 0600);
	need(file >= 0, "file");
	tell("alone", lock(F_SETLK, F_WRLCK, 0, 10));
	tell("shared", lock(F_SETLK, F_RDLCK, 20, 10));
	tell("alone", lock(F_SETLK, F_WRLCK, 100, 20));
	tell("a hole in it", lock(F_SETLK, F_UNLCK, 110, 5));
	tell("nothing", lock(F_SETLK, F_WRLCK, -5, 1));
	tell("no kind", lock(F_SETLK, 77, 0, 1));
	reap("child", spawn(try));
	pid_t child = spawn(wait_for);
	usleep(20000);
	lock(F_SETLK, F_UNLCK, 0, 10);
	reap("child", child);
	reap("child", spawn(interrupted));
	child = spawn(close_other);
	usleep(20000);
	tell("gone with another descriptor", lock(F_SETLK, F_WRLCK, 500, 1));
	reap("child", child);
	lock(F_SETLK, F_WRLCK, 600, 1);
	child = spawn(circle);
	usleep(300000);
	tell("in a circle", lock(F_SETLKW, F_WRLCK, 700, 1));
	lock(F_SETLK, F_UNLCK, 600, 1);
	reap("child", child);
	many();
	int reader = open("file", O_RDONLY);
	struct flock how = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	tell("alone, to read", fcntl(reader, F_SETLK, &how));
	return 0;
}
