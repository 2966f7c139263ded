/* Signals that are read from files. */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

static sigset_t wanted;

static void take(const char *what, int fd)
{
	struct signalfd_siginfo got[3];
	memset(got, -1, sizeof got);
	ssize_t count = read(fd, got, sizeof got);
	if (count < 0) {
		tell(what, -1);
		return;
	}
	for (size_t i = 0; i < count / sizeof *got; i++)
		say("%s: signal %d, code %d, from here %d, user %d, status %d, word %d", what, got[i].ssi_signo, got[i].ssi_code,
			got[i].ssi_pid == (uint32_t)getpid(), got[i].ssi_uid == getuid(), got[i].ssi_status, got[i].ssi_int);
}

static void look(const char *what, int fd)
{
	struct pollfd one = { fd, POLLIN | POLLOUT, 0 };
	int ready = poll(&one, 1, 0);
	say("%s: %d %d", what, ready, one.revents);
}

static int child(void)
{
	return 7;
}

static void *sends_late(void *unused)
{
	(void)unused;
	usleep(20000);
	kill(getpid(), SIGUSR1);
	return NULL;
}

static void *reads_own(void *file)
{
	pthread_kill(pthread_self(), SIGUSR2);
	take("the thread's", *(int *)file);
	return NULL;
}

static int in_child(void)
{
	take("not the child's", 30);
	kill(getpid(), SIGUSR1);
	take("the child's", 30);
	return 0;
}

int main(void)
{
	pthread_t thread;
	char byte[16];
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGRTMIN);
	sigset_t all = wanted;
	sigaddset(&all, SIGUSR2);
	sigprocmask(SIG_BLOCK, &all, NULL);
	tell("no flags", signalfd(-1, &wanted, 1));
	tell("nowhere", signalfd(-1, (void *)nowhere, 0));
	tell("another file", signalfd(0, &wanted, 0));
	tell("no file", signalfd(999, &wanted, 0));
	int fd = signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
	need(fd >= 0, "signalfd");
	say("closes: %d", fcntl(fd, F_GETFD));
	take("none", fd);
	look("none", fd);
	kill(getpid(), SIGUSR2);
	look("another", fd);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR1);
	look("one", fd);
	tell("too short", read(fd, byte, sizeof byte));
	take("once", fd);
	take("none", fd);
	sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 5 });
	sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 6 });
	take("both", fd);
	tell("write", write(fd, byte, 1));
	reap("child", spawn(child));
	take("its end", fd);
	tell("more", signalfd(fd, &all, 0) == fd ? 0 : -1);
	take("the other", fd);
	fcntl(fd, F_SETFL, 0);
	need(pthread_create(&thread, NULL, sends_late, NULL) == 0, "pthread_create");
	take("late", fd);
	pthread_join(thread, NULL);
	need(pthread_create(&thread, NULL, reads_own, &fd) == 0, "pthread_create");
	pthread_join(thread, NULL);
	int set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	need(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
	say("epoll: %d", epoll_wait(set, &event, 1, 0));
	need(pthread_create(&thread, NULL, sends_late, NULL) == 0, "pthread_create");
	say("epoll: %d", epoll_wait(set, &event, 1, 5000));
	pthread_join(thread, NULL);
	sigset_t pending;
	sigpending(&pending);
	say("pending: %d", sigismember(&pending, SIGUSR1));
	take("it", fd);
	sigpending(&pending);
	say("pending: %d", sigismember(&pending, SIGUSR1));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	need(dup2(fd, 30) == 30, "dup2");
	kill(getpid(), SIGUSR1);
	reap("child", spawn(in_child));
	take("this one's", fd);
	return 0;
}
