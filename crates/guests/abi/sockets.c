/* Unix stream sockets in pairs. */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int pair[2], signals;

static void open_pair(int flags)
{
	need(socketpair(AF_UNIX, SOCK_STREAM | flags, 0, pair) == 0, "socketpair");
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static void handler(int number)
{
	(void)number;
	signals++;
}

/* What a call has moved, or its error. */
static void moved(const char *what, ssize_t count)
{
	if (count < 0)
		tell(what, count);
	else
		say("%s: %d", what, (int)count);
}

static void put(int side, const char *text)
{
	need(write(pair[side], text, strlen(text)) == (ssize_t)strlen(text), "write");
}

static void get(const char *what, int side)
{
	char text[100];
	ssize_t count = read(pair[side], text, sizeof text - 1);
	if (count < 0) {
		tell(what, count);
		return;
	}
	text[count] = 0;
	say("%s: %d '%s'", what, (int)count, text);
}

static void look(const char *what, int side)
{
	struct pollfd one = { pair[side], POLLIN | POLLOUT | POLLRDHUP, 0 };
	int ready = poll(&one, 1, 0);
	say("%s: %d%s%s%s%s%s", what, ready, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "",
		one.revents & POLLRDHUP ? " rdhup" : "", one.revents & POLLHUP ? " hup" : "", one.revents & POLLERR ? " err" : "");
}

static void option(const char *what, int side, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof value;
	int got = getsockopt(pair[side], level, name, &value, &size);
	if (got == 0)
		say("%s: %d, %d bytes", what, value, (int)size);
	else
		tell(what, got);
}

static void kinds(void)
{
	int none[2];
	tell("no domain", socketpair(99, SOCK_STREAM, 0, none));
	tell("negative domain", socketpair(-1, SOCK_STREAM, 0, none));
	tell("no type", socketpair(AF_UNIX, 12, 0, none));
	tell("type 0", socketpair(AF_UNIX, 0, 0, none));
	tell("another type", socketpair(AF_UNIX, SOCK_RDM, 0, none));
	tell("flags", socketpair(AF_UNIX, SOCK_STREAM | 0x100, 0, none));
	tell("another protocol", socketpair(AF_UNIX, SOCK_STREAM, 5, none));
	tell("its protocol", socketpair(AF_UNIX, SOCK_STREAM, PF_UNIX, none));
	close(none[0]);
	close(none[1]);
	int lowest = dup(0);
	close(lowest);
	tell("nowhere", socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)nowhere));
	int next = dup(0);
	close(next);
	say("leaves none open: %d", next == lowest);
	open_pair(SOCK_CLOEXEC | SOCK_NONBLOCK);
	for (int side = 0; side < 2; side++)
		say("closes: %d, waits: %d", fcntl(pair[side], F_GETFD), !(fcntl(pair[side], F_GETFL) & O_NONBLOCK));
	get("none", 0);
	close_pair();
}

static void attributes(void)
{
	open_pair(0);
	struct stat stat;
	need(fstat(pair[0], &stat) == 0, "fstat");
	say("a socket: %d, mode %o, links %d", S_ISSOCK(stat.st_mode), stat.st_mode & 07777, (int)stat.st_nlink);
	say("flags: %d %d", fcntl(pair[0], F_GETFD), (fcntl(pair[0], F_GETFL) & O_ACCMODE) == O_RDWR);
	option("type", 0, SOL_SOCKET, SO_TYPE);
	option("domain", 0, SOL_SOCKET, SO_DOMAIN);
	option("protocol", 0, SOL_SOCKET, SO_PROTOCOL);
	option("listens", 0, SOL_SOCKET, SO_ACCEPTCONN);
	option("error", 0, SOL_SOCKET, SO_ERROR);
	option("no option", 0, SOL_SOCKET, 9999);
	option("another level", 0, 6, 1);
	char small[2] = { 'x', 'x' };
	socklen_t size = 1;
	tell("a small value", getsockopt(pair[0], SOL_SOCKET, SO_TYPE, small, &size));
	say("%d byte: %d %c", (int)size, small[0], small[1]);
	struct sockaddr_un name;
	for (int side = 0; side < 2; side++) {
		size = sizeof name;
		int got = side ? getpeername(pair[0], (void *)&name, &size) : getsockname(pair[0], (void *)&name, &size);
		say("name: %d, family %d, %d bytes", got, name.sun_family, (int)size);
	}
	char link[100], path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", pair[0]);
	ssize_t length = readlink(path, link, sizeof link);
	say("link: %d", length > 8 && memcmp(link, "socket:[", 8) == 0);
	tell("open again", open(path, O_RDWR));
	tell("seek", lseek(pair[0], 0, SEEK_CUR));
	tell("at a place", pread(pair[0], link, 1, 0));
	tell("size of a pipe", fcntl(pair[0], F_GETPIPE_SZ));
	tell("sync", fsync(pair[0]));
	int plain[2];
	need(pipe(plain) == 0, "pipe");
	tell("send to a pipe", send(plain[1], "x", 1, 0));
	tell("receive from a pipe", recv(plain[0], link, 1, 0));
	tell("shut a pipe", shutdown(plain[0], SHUT_RD));
	tell("send to nothing", send(999, "x", 1, 0));
	close(plain[0]);
	close(plain[1]);
	close_pair();
}

static void bytes(void)
{
	open_pair(0);
	look("empty", 0);
	put(0, "there");
	put(1, "back");
	int count;
	tell("FIONREAD", ioctl(pair[1], FIONREAD, &count));
	say("there are %d", count);
	look("bytes", 0);
	get("one side", 0);
	get("the other", 1);
	put(0, "one");
	put(0, "two");
	get("joined", 1);
	moved("write to nowhere", write(pair[0], nowhere, 1));
	put(0, "abc");
	moved("read to nowhere", read(pair[1], nowhere, 1));
	get("still there", 1);
	moved("none", write(pair[0], "", 0));
	moved("send", send(pair[0], "hello", 5, MSG_NOSIGNAL));
	char text[8] = "", more[8] = "";
	moved("receive", recv(pair[1], text, 2, 0));
	socklen_t size = 77;
	struct sockaddr_un name;
	moved("receive from", recvfrom(pair[1], text, 8, 0, (void *)&name, &size));
	say("'%s', address of %d bytes", text, (int)size);
	name.sun_family = AF_UNIX;
	moved("with an address", sendto(pair[0], "x", 1, 0, (void *)&name, sizeof name));
	moved("without waiting", recv(pair[1], text, 1, MSG_DONTWAIT));
	struct iovec parts[2] = { { "left", 4 }, { "right", 5 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	moved("a message", sendmsg(pair[0], &message, 0));
	struct iovec into[2] = { { text, 6 }, { more, 7 } };
	struct msghdr got = { .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = into, .msg_iovlen = 2,
		.msg_control = &size, .msg_controllen = sizeof size, .msg_flags = -1 };
	moved("its parts", recvmsg(pair[1], &got, 0));
	say("'%.6s' '%s', %d %d %d", text, more, (int)got.msg_namelen, (int)got.msg_controllen, got.msg_flags);
	moved("a message from nowhere", sendmsg(pair[0], (void *)nowhere, 0));
	got.msg_flags = 0;
	moved("without waiting", recvmsg(pair[1], &got, MSG_DONTWAIT));
	close_pair();
}

static void *puts_late(void *unused)
{
	(void)unused;
	usleep(20000);
	put(0, "ab");
	usleep(20000);
	put(0, "cd");
	return NULL;
}

static void *shuts_late(void *unused)
{
	(void)unused;
	usleep(20000);
	shutdown(pair[0], SHUT_RDWR);
	return NULL;
}

static void *closes_late(void *unused)
{
	(void)unused;
	usleep(20000);
	close(pair[0]);
	return NULL;
}

static pthread_t later(void *(*work)(void *))
{
	pthread_t thread;
	need(pthread_create(&thread, NULL, work, NULL) == 0, "pthread_create");
	return thread;
}

static void *fills(void *from)
{
	char *big = from;
	need(write(pair[0], big, 500000) == 500000, "write");
	shutdown(pair[0], SHUT_WR);
	return NULL;
}

static void waits(void)
{
	open_pair(0);
	char text[8] = "";
	pthread_t thread = later(puts_late);
	moved("the first bytes", recv(pair[1], text, 4, 0));
	pthread_join(thread, NULL);
	get("the others", 1);
	thread = later(puts_late);
	moved("all bytes", recv(pair[1], text, 4, MSG_WAITALL));
	pthread_join(thread, NULL);
	say("'%s'", text);
	static char big[500000], copy[500000];
	for (size_t i = 0; i < sizeof big; i++)
		big[i] = i * 7 % 251;
	need(pthread_create(&thread, NULL, fills, big) == 0, "pthread_create");
	size_t done = 0;
	for (ssize_t count; (count = read(pair[1], copy + done, sizeof copy - done)) > 0;)
		done += count;
	pthread_join(thread, NULL);
	say("many: %d, the same: %d", (int)done, memcmp(big, copy, sizeof big) == 0);
	close_pair();

	open_pair(0);
	thread = later(shuts_late);
	get("until it is shut", 1);
	pthread_join(thread, NULL);
	close_pair();
	open_pair(0);
	thread = later(shuts_late);
	get("until it shuts itself", 0);
	pthread_join(thread, NULL);
	close_pair();
	open_pair(0);
	thread = later(closes_late);
	struct pollfd one = { pair[1], 0, 0 };
	say("poll until it is closed: %d, %d", poll(&one, 1, 5000), one.revents == POLLHUP);
	pthread_join(thread, NULL);
	get("closed", 1);
	close(pair[1]);

	open_pair(0);
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGALRM, &action, NULL);
	ualarm(20000, 0);
	get("until a signal", 1);
	close_pair();

	open_pair(SOCK_NONBLOCK);
	moved("nothing yet", read(pair[1], text, 1));
	ssize_t count;
	while ((count = write(pair[0], big, sizeof big)) > 0)
		;
	moved("full", count);
	struct pollfd full = { pair[0], POLLOUT, 0 };
	say("room: %d", poll(&full, 1, 0));
	while (read(pair[1], copy, sizeof copy) > 0)
		;
	say("room: %d", poll(&full, 1, 0));
	close_pair();
}

static void ends(void)
{
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGPIPE, &action, NULL);
	signals = 0;
	open_pair(0);
	tell("no way", shutdown(pair[0], 3));
	put(0, "left");
	tell("shut the way there", shutdown(pair[0], SHUT_WR));
	moved("write", write(pair[0], "x", 1));
	say("signals: %d", signals);
	moved("send", send(pair[0], "x", 1, MSG_NOSIGNAL));
	say("signals: %d", signals);
	look("this side", 0);
	look("that side", 1);
	get("what was left", 1);
	get("the end", 1);
	put(1, "back");
	get("the way back", 0);
	tell("shut the way back", shutdown(pair[0], SHUT_RD));
	get("nothing comes", 0);
	moved("nothing goes", send(pair[1], "x", 1, 0));
	say("signals: %d", signals);
	look("this side", 0);
	look("that side", 1);
	tell("again", shutdown(pair[0], SHUT_RDWR));
	close_pair();

	open_pair(0);
	put(0, "read");
	get("all is read", 1);
	put(0, "left");
	close(pair[0]);
	look("closed", 1);
	get("what was left", 1);
	get("the end", 1);
	moved("nobody reads", write(pair[1], "x", 1));
	say("signals: %d", signals);
	close(pair[1]);

	open_pair(0);
	put(1, "never read");
	close(pair[0]);
	look("bytes were lost", 1);
	get("an error", 1);
	get("then the end", 1);
	look("the error is gone", 1);
	close(pair[1]);
	open_pair(0);
	put(1, "never read");
	close(pair[0]);
	option("error", 1, SOL_SOCKET, SO_ERROR);
	option("once", 1, SOL_SOCKET, SO_ERROR);
	get("the end", 1);
	close(pair[1]);
}

static void report(const char *what, int set)
{
	struct epoll_event event = { 0 };
	int count = epoll_wait(set, &event, 1, 0);
	say("%s: %d%s%s%s%s", what, count, event.events & EPOLLIN ? " in" : "", event.events & EPOLLOUT ? " out" : "",
		event.events & EPOLLRDHUP ? " rdhup" : "", event.events & EPOLLHUP ? " hup" : "");
}

static void sets(void)
{
	open_pair(SOCK_NONBLOCK);
	int set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };
	tell("add", epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event));
	report("empty", set);
	put(1, "a");
	report("bytes", set);
	report("no others", set);
	put(0, "x");
	get("the other reads", 1);
	report("still no others", set);
	put(1, "b");
	report("others", set);
	get("all", 0);
	shutdown(pair[1], SHUT_WR);
	report("no more will come", set);
	close(pair[1]);
	report("closed", set);
	event.events = EPOLLIN | EPOLLOUT;
	tell("by level", epoll_ctl(set, EPOLL_CTL_MOD, pair[0], &event));
	report("closed", set);
	report("still closed", set);
	close(pair[0]);
	report("gone", set);
	close(set);
}

static int child(void)
{
	char text[8];
	close(pair[0]);
	ssize_t count;
	while ((count = read(pair[1], text, sizeof text)) > 0) {
		for (ssize_t i = 0; i < count; i++)
			text[i] += 'A' - 'a';
		if (write(pair[1], text, count) != count)
			return 1;
	}
	return count < 0;
}

/* Another process answers. */
static void processes(void)
{
	open_pair(0);
	pid_t pid = spawn(child);
	close(pair[1]);
	put(0, "first");
	get("answer", 0);
	put(0, "second");
	get("answer", 0);
	shutdown(pair[0], SHUT_WR);
	get("the end", 0);
	close(pair[0]);
	reap("child", pid);
}

int main(void)
{
	kinds();
	attributes();
	bytes();
	waits();
	ends();
	sets();
	processes();
	return 0;
}
