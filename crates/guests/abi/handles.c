/* Processes as files (pidfd). */
#include "abi.h"
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static int handle_of(pid_t process, unsigned flags)
{
	return syscall(SYS_pidfd_open, process, flags);
}

static int send(int fd, int signal, siginfo_t *info, unsigned flags)
{
	return syscall(SYS_pidfd_send_signal, fd, signal, info, flags);
}

static int sleeps(void)
{
	while (pause())
		;
	return 0;
}

static int ends_late(void)
{
	usleep(30000);
	return 5;
}

static void look(const char *what, int fd)
{
	struct pollfd one = { fd, POLLIN | POLLOUT, 0 };
	int ready = poll(&one, 1, 0);
	say("%s: %d %d", what, ready, one.revents);
}

static void wait_for(const char *what, int fd, int options)
{
	siginfo_t info;
	memset(&info, 0, sizeof info);
	int result = waitid(P_PIDFD, fd, &info, options);
	if (result == -1)
		tell(what, -1);
	else
		say("%s: signal %d, code %d, status %d", what, info.si_signo, info.si_code, info.si_status);
}

int main(void)
{
	char byte;
	tell("no process", handle_of(4000000, 0));
	tell("no number", handle_of(0, 0));
	tell("no flags", handle_of(getpid(), 1));
	int self = handle_of(getpid(), 0);
	need(self >= 0, "pidfd_open");
	say("closes: %d", fcntl(self, F_GETFD));
	look("oneself", self);
	tell("read", read(self, &byte, 1));
	tell("signal oneself", send(self, 0, NULL, 0));
	tell("flags", send(self, 0, NULL, 16));
	tell("no signal", send(self, 99, NULL, 0));
	tell("another file", send(0, 0, NULL, 0));
	wait_for("no child", self, WEXITED);

	pid_t child = spawn(ends_late);
	int fd = handle_of(child, 0);
	wait_for("not yet", fd, WEXITED | WNOHANG);
	look("lives", fd);
	struct pollfd one = { fd, POLLIN, 0 };
	int ready = poll(&one, 1, 5000);
	say("poll: %d %d", ready, one.revents);
	wait_for("ended", fd, WEXITED | WNOWAIT);
	tell("a signal", send(fd, SIGUSR1, NULL, 0));
	wait_for("again", fd, WEXITED);
	tell("a signal", send(fd, SIGUSR1, NULL, 0));
	wait_for("no more", fd, WEXITED);
	close(fd);

	child = spawn(sleeps);
	fd = handle_of(child, O_NONBLOCK);
	wait_for("does not wait", fd, WEXITED);
	int set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	need(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
	say("epoll: %d", epoll_wait(set, &event, 1, 0));
	siginfo_t info;
	memset(&info, 0, sizeof info);
	info.si_signo = SIGUSR1;
	info.si_code = SI_QUEUE;
	tell("another number", send(fd, SIGUSR2, &info, 0));
	info.si_code = SI_USER;
	tell("from a user", send(fd, SIGUSR1, &info, 0));
	tell("kill", send(fd, SIGKILL, NULL, 0));
	say("epoll: %d", epoll_wait(set, &event, 1, 5000));
	fcntl(fd, F_SETFL, 0);
	wait_for("killed", fd, WEXITED);
	close(fd);

	fd = -1;
	child = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &fd, NULL, 0);
	if (child == 0)
		_exit(3);
	need(child > 0, "clone");
	say("a descriptor: %d, closes: %d", fd > self, fcntl(fd, F_GETFD));
	wait_for("cloned", fd, WEXITED);
	close(fd);
	tell("two at one place", syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, NULL, &fd, NULL, 0));
	int pipes[2];
	need(pipe(pipes) == 0 && write(pipes[1], "x", 1) == 1, "pipe");
	int copy = syscall(SYS_pidfd_getfd, self, pipes[0], 0);
	need(copy >= 0, "pidfd_getfd");
	say("a copy: %d, closes: %d", (int)read(copy, &byte, 1), fcntl(copy, F_GETFD));
	tell("no descriptor", syscall(SYS_pidfd_getfd, self, 999, 0));
	return 0;
}
