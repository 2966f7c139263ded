/* Signals when a file is ready: its owner gets them. */
#include "abi.h"
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

static volatile int signals;

static void handler(int number)
{
	(void)number;
	signals++;
}

static void wait_for(const char *what, int count)
{
	for (int i = 0; signals < count && i < 500; i++)
		usleep(2000);
	say("%s: %d", what, signals >= count);
	signals = 0;
}

static int child(void)
{
	signals = 0;
	raise(SIGSTOP);
	wait_for("in a child", 1);
	return 0;
}

int main(void)
{
	int pair[2], on = 1;
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigaction(SIGIO, &action, NULL);
	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	say("nobody: %d", fcntl(pair[0], F_GETOWN));
	tell("an owner", fcntl(pair[0], F_SETOWN, getpid()));
	say("it is: %d", fcntl(pair[0], F_GETOWN) == getpid());
	tell("nobody has the number", fcntl(pair[0], F_SETOWN, 4000000));
	need(write(pair[1], "x", 1) == 1, "write");
	usleep(20000);
	say("not asked: %d", signals);
	tell("on", ioctl(pair[0], FIOASYNC, &on));
	say("the flag: %d", (fcntl(pair[0], F_GETFL) & O_ASYNC) != 0);
	usleep(20000);
	say("not for what has come: %d", signals);
	need(write(pair[1], "x", 1) == 1, "write");
	wait_for("a byte", 1);
	need(write(pair[1], "x", 1) == 1, "write");
	wait_for("another", 1);
	tell("off", fcntl(pair[0], F_SETFL, 0));
	need(write(pair[1], "x", 1) == 1, "write");
	usleep(20000);
	say("off: %d, the flag: %d", signals, (fcntl(pair[0], F_GETFL) & O_ASYNC) != 0);
	pid_t one = spawn(child);
	need(waitpid(one, NULL, WUNTRACED) == one, "waitpid");
	tell("a child", fcntl(pair[0], F_SETOWN, one));
	tell("on", fcntl(pair[0], F_SETFL, O_ASYNC));
	need(write(pair[1], "x", 1) == 1, "write");
	usleep(50000);
	kill(one, SIGCONT);
	reap("child", one);
	close(pair[1]);
	close(pair[0]);
	need(pipe(pair) == 0, "pipe");
	tell("a group", fcntl(pair[0], F_SETOWN, -getpgrp()));
	say("it is: %d", fcntl(pair[0], F_GETOWN) == -getpgrp());
	say("a high number: %d", dup2(pair[0], 999));
	say("the lowest: %d", fcntl(pair[0], F_DUPFD, 0) == pair[1] + 1);
	close(pair[0]);
	say("the lowest: %d", dup(999) == pair[0]);
	struct rlimit limit = { 1 << 21, 1 << 21 };
	tell("above all", setrlimit(RLIMIT_NOFILE, &limit));
	int file = open("/dev/null", O_RDWR);
	tell("not of this", ioctl(file, FIOASYNC, &on));
	return 0;
}
