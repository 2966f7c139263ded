/* TCP on the loopback interface. */
#include "abi.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>

static struct sockaddr_in four(const char *ip, int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, ip, &at.sin_addr);
	return at;
}

static struct sockaddr_in6 six(const char *ip, int port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	inet_pton(AF_INET6, ip, &at.sin6_addr);
	return at;
}

static int new_socket(int domain, int flags)
{
	int fd = socket(domain, SOCK_STREAM | flags, 0);
	need(fd >= 0, "socket");
	return fd;
}

static int bind_to(int fd, const char *ip, int port)
{
	struct sockaddr_in at = four(ip, port);
	return bind(fd, (void *)&at, sizeof at);
}

static int connect_to(int fd, const char *ip, int port)
{
	struct sockaddr_in at = four(ip, port);
	return connect(fd, (void *)&at, sizeof at);
}

static int bind_six(int fd, const char *ip, int port)
{
	struct sockaddr_in6 at = six(ip, port);
	return bind(fd, (void *)&at, sizeof at);
}

static int connect_six(int fd, const char *ip, int port)
{
	struct sockaddr_in6 at = six(ip, port);
	return connect(fd, (void *)&at, sizeof at);
}

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value);
}

static int get(int fd, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof value;
	need(getsockopt(fd, level, name, &value, &size) == 0, "getsockopt");
	return value;
}

static int port_of(int fd)
{
	struct sockaddr_in6 at;
	socklen_t size = sizeof at;
	need(getsockname(fd, (void *)&at, &size) == 0, "getsockname");
	return ntohs(at.sin6_port);
}

/* The name of a socket; a port is said to be `known`, or handed out. */
static void name_of(const char *what, int fd, int (*of)(int, struct sockaddr *, socklen_t *), int known)
{
	struct sockaddr_storage at;
	socklen_t size = sizeof at;
	char ip[60] = "";
	if (of(fd, (void *)&at, &size) == -1) {
		tell(what, -1);
		return;
	}
	struct sockaddr_in *v4 = (void *)&at;
	struct sockaddr_in6 *v6 = (void *)&at;
	inet_ntop(at.ss_family, at.ss_family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr, ip, sizeof ip);
	int port = ntohs(v4->sin_port);
	say("%s: %s, %d bytes, %s", what, ip, (int)size, port == 0 ? "no port" : port == known ? "the port" : port >= 32768 ? "any" : "?");
}

static void look(const char *what, int fd)
{
	struct pollfd one = { fd, POLLIN | POLLOUT | POLLRDHUP, 0 };
	int ready = poll(&one, 1, 0);
	say("%s: %d%s%s%s%s%s", what, ready, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "",
		one.revents & POLLRDHUP ? " rdhup" : "", one.revents & POLLHUP ? " hup" : "", one.revents & POLLERR ? " err" : "");
}

static void moved(const char *what, ssize_t count)
{
	if (count < 0)
		tell(what, count);
	else
		say("%s: %d", what, (int)count);
}

static int listener(int most)
{
	int fd = new_socket(AF_INET, 0);
	need(bind_to(fd, "127.0.0.1", 0) == 0 && listen(fd, most) == 0, "listen");
	return fd;
}

static int pair[2];

static void open_pair(void)
{
	int server = listener(5);
	pair[0] = new_socket(AF_INET, 0);
	need(connect_to(pair[0], "127.0.0.1", port_of(server)) == 0, "connect");
	pair[1] = accept(server, NULL, NULL);
	need(pair[1] >= 0, "accept");
	close(server);
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static void errors(void)
{
	char byte;
	tell("another protocol", socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	tell("another type", socket(AF_INET, SOCK_RDM, 0));
	tell("a pair", socketpair(AF_INET, SOCK_STREAM, 0, pair));
	int fd = new_socket(AF_INET, 0);
	look("new", fd);
	name_of("its name", fd, getsockname, -1);
	name_of("its peer", fd, getpeername, -1);
	moved("read", read(fd, &byte, 1));
	moved("send", send(fd, "x", 1, MSG_NOSIGNAL));
	tell("shutdown", shutdown(fd, SHUT_WR));
	tell("accept", accept(fd, NULL, NULL));
	tell("a network", connect_to(fd, "127.0.0.1", 1));
	tell("once more", connect_to(fd, "127.0.0.1", 1));
	tell("a strange number", bind_to(fd, "198.51.100.7", 0));
	struct sockaddr_in at = four("127.0.0.1", 0);
	tell("too short", bind(fd, (void *)&at, sizeof at - 1));
	tell("nowhere", bind(fd, (void *)nowhere, sizeof at));
	at.sin_family = AF_INET6;
	tell("another family", bind(fd, (void *)&at, sizeof at));
	close(fd);
	fd = new_socket(AF_INET6, 0);
	tell("too short", bind(fd, (void *)&at, sizeof at));
	tell("a strange number", bind_six(fd, "2001:db8::1", 0));
	tell("nobody", connect_six(fd, "::1", 1));
	close(fd);
	fd = new_socket(AF_INET, SOCK_NONBLOCK);
	tell("does not wait", connect_to(fd, "127.0.0.1", 1));
	look("refused", fd);
	say("error %d, then %d", get(fd, SOL_SOCKET, SO_ERROR) == ECONNREFUSED, get(fd, SOL_SOCKET, SO_ERROR));
	tell("again", connect_to(fd, "127.0.0.1", 1));
	close(fd);
	fd = new_socket(AF_INET, SOCK_NONBLOCK);
	tell("does not wait", connect_to(fd, "127.0.0.1", 1));
	tell("its error", connect_to(fd, "127.0.0.1", 1));
	close(fd);
}

static void claims(void)
{
	int one = new_socket(AF_INET, 0), other = new_socket(AF_INET, 0), v6 = new_socket(AF_INET6, 0);
	tell("bind", bind_to(one, "0.0.0.0", 0));
	int port = port_of(one);
	say("handed out: %d", port >= 32768);
	name_of("its name", one, getsockname, port);
	tell("again", bind_to(one, "0.0.0.0", 0));
	tell("the same", bind_to(other, "127.0.0.1", port));
	tell("by another way", bind_six(v6, "::", port));
	need(set(v6, IPPROTO_IPV6, IPV6_V6ONLY, 1) == 0, "V6ONLY");
	tell("only six", bind_six(v6, "::", port));
	close(v6);
	set(other, SOL_SOCKET, SO_REUSEADDR, 1);
	tell("reuses", bind_to(other, "127.0.0.1", port));
	set(one, SOL_SOCKET, SO_REUSEADDR, 1);
	tell("both reuse", bind_to(other, "127.0.0.1", port));
	tell("listen", listen(one, 5));
	int third = new_socket(AF_INET, 0);
	set(third, SOL_SOCKET, SO_REUSEADDR, 1);
	tell("while one listens", bind_to(third, "127.0.0.1", port));
	tell("another number", bind_to(third, "127.0.0.2", 0));
	int second = port_of(third);
	tell("its port, elsewhere", bind_to(new_socket(AF_INET, 0), "127.0.0.3", second));
	close(other);
	int client = new_socket(AF_INET, 0);
	tell("connect", connect_to(client, "127.0.0.5", port));
	name_of("the client", client, getsockname, port);
	name_of("its peer", client, getpeername, port);
	int accepted = accept(one, NULL, NULL);
	name_of("the accepted", accepted, getsockname, port);
	close(client);
	client = new_socket(AF_INET, 0);
	tell("connect to any", connect_to(client, "0.0.0.0", port));
	name_of("its peer", client, getpeername, port);
	close(client);
	close(accepted);
	close(one);
	client = new_socket(AF_INET, 0);
	tell("closed", connect_to(client, "127.0.0.1", port));
	close(client);
	one = new_socket(AF_INET, 0);
	tell("listen without a port", listen(one, 5));
	name_of("its name", one, getsockname, -1);
	tell("connect while it listens", connect_to(one, "127.0.0.1", 1));
	say("listens: %d", get(one, SOL_SOCKET, SO_ACCEPTCONN));
	close(one);
	int twins[2];
	port = 0;
	for (int i = 0; i < 2; i++) {
		twins[i] = new_socket(AF_INET, 0);
		set(twins[i], SOL_SOCKET, SO_REUSEPORT, 1);
		tell("a twin", bind_to(twins[i], "127.0.0.1", port));
		tell("listens", listen(twins[i], 1));
		port = port_of(twins[i]);
	}
	close(twins[0]);
	close(twins[1]);
	close(third);
}

static void talks(void)
{
	char text[20] = "";
	int server = listener(5), port = port_of(server), client = new_socket(AF_INET, 0);
	look("listens", server);
	tell("connect", connect_to(client, "127.0.0.1", port));
	look("one waits", server);
	look("connected", client);
	tell("again", connect_to(client, "127.0.0.1", port));
	need(write(client, "hello", 5) == 5, "write");
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	int accepted = accept4(server, (void *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
	say("from %d bytes, family %d, the client's port: %d", (int)size, from.sin_family, ntohs(from.sin_port) == port_of(client));
	say("closes: %d, waits: %d", fcntl(accepted, F_GETFD), !(fcntl(accepted, F_GETFL) & O_NONBLOCK));
	int count;
	ioctl(accepted, FIONREAD, &count);
	say("there are %d", count);
	moved("peek", recv(accepted, text, 3, MSG_PEEK));
	say("'%s'", text);
	moved("read", read(accepted, text, sizeof text));
	say("'%s'", text);
	moved("none", read(accepted, text, sizeof text));
	name_of("the client", client, getsockname, -1);
	name_of("its peer", client, getpeername, port);
	name_of("the accepted", accepted, getsockname, port);
	name_of("its peer", accepted, getpeername, port_of(client));
	moved("with an address", sendto(accepted, "y", 1, 0, (void *)&from, sizeof from));
	size = 77;
	moved("receive from", recvfrom(client, text, 1, 0, (void *)&from, &size));
	say("address of %d bytes", (int)size);
	struct iovec parts[2] = { { "left", 4 }, { "right", 5 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	moved("a message", sendmsg(client, &message, MSG_NOSIGNAL));
	memset(text, 0, sizeof text);
	moved("all", recv(accepted, text, 9, MSG_WAITALL));
	say("'%s'", text);
	int file = open("file", O_CREAT | O_RDWR, 0600);
	need(write(file, "content", 7) == 7, "write");
	off_t at = 3;
	fcntl(accepted, F_SETFL, 0);
	moved("sendfile", sendfile(client, file, &at, 10));
	memset(text, 0, sizeof text);
	moved("of a file", read(accepted, text, sizeof text));
	say("'%s'", text);
	close(file);
	close(accepted);
	close(client);
	close(server);
}

static void options(void)
{
	static const struct { const char *what; int level, name, value; } all[] = {
		{ "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 7 }, { "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, 1 }, { "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 2 },
		{ "TCP_CORK", IPPROTO_TCP, TCP_CORK, 1 }, { "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ "TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 10 }, { "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 3 },
		{ "TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 }, { "IP_TOS", IPPROTO_IP, IP_TOS, 16 },
		{ "IP_TTL", IPPROTO_IP, IP_TTL, 9 }, { "IP_TTL", IPPROTO_IP, IP_TTL, 300 },
	};
	int fd = new_socket(AF_INET, 0);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		say("%s: %d", all[i].what, get(fd, all[i].level, all[i].name));
		tell("set", set(fd, all[i].level, all[i].name, all[i].value));
		say("now %d", get(fd, all[i].level, all[i].name));
	}
	say("type %d, domain %d, protocol %d, listens %d, error %d", get(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM,
		get(fd, SOL_SOCKET, SO_DOMAIN) == AF_INET, get(fd, SOL_SOCKET, SO_PROTOCOL), get(fd, SOL_SOCKET, SO_ACCEPTCONN),
		get(fd, SOL_SOCKET, SO_ERROR));
	tell("no option", set(fd, SOL_SOCKET, 9999, 1));
	tell("no option of TCP", set(fd, IPPROTO_TCP, 9999, 1));
	tell("no level", set(fd, 7777, 1, 1));
	tell("too short", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &fd, 1));
	tell("from nowhere", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, nowhere, 4));
	struct linger linger = { 1, 5 };
	socklen_t size = sizeof linger;
	tell("linger", setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, size));
	linger.l_linger = 0;
	tell("linger", getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &size));
	say("%d %d, %d bytes", linger.l_onoff, linger.l_linger, (int)size);
	int before = get(fd, SOL_SOCKET, SO_RCVBUF);
	tell("a buffer", set(fd, SOL_SOCKET, SO_RCVBUF, 65536));
	say("%d %d", before > 0, get(fd, SOL_SOCKET, SO_RCVBUF));
	close(fd);
	open_pair();
	struct timeval limit = { 0, 30000 };
	size = sizeof limit;
	tell("a limit", setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, size));
	moved("until then", read(pair[0], &fd, 1));
	moved("until then", recv(pair[0], &fd, 1, 0));
	limit.tv_sec = 9;
	tell("the limit", getsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, &size));
	say("%d bytes, %d %d", (int)size, (int)limit.tv_sec, (int)limit.tv_usec > 20000);
	limit.tv_usec = 1000000;
	tell("no limit", setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, size));
	close_pair();
}

static void ends(void)
{
	char text[10];
	signal(SIGPIPE, SIG_IGN);
	open_pair();
	need(write(pair[0], "left", 4) == 4, "write");
	tell("shut", shutdown(pair[0], SHUT_WR));
	look("the shut", pair[0]);
	look("the other", pair[1]);
	moved("write", write(pair[0], "x", 1));
	moved("what is left", read(pair[1], text, sizeof text));
	moved("the end", read(pair[1], text, sizeof text));
	look("at the end", pair[1]);
	moved("still", write(pair[1], "back", 4));
	moved("still", read(pair[0], text, sizeof text));
	tell("shut both", shutdown(pair[1], SHUT_RDWR));
	look("both", pair[1]);
	look("both", pair[0]);
	close_pair();

	open_pair();
	tell("shut", shutdown(pair[0], SHUT_RD));
	moved("the end", read(pair[0], text, sizeof text));
	look("deaf", pair[0]);
	moved("it is sent", write(pair[1], "x", 1));
	close_pair();

	open_pair();
	close(pair[0]);
	look("the other is closed", pair[1]);
	moved("the end", read(pair[1], text, sizeof text));
	moved("it is sent", write(pair[1], "x", 1));
	usleep(20000);
	look("then", pair[1]);
	moved("no more", write(pair[1], "x", 1));
	moved("the end", read(pair[1], text, sizeof text));
	close(pair[1]);

	open_pair();
	need(write(pair[1], "unread", 6) == 6, "write");
	usleep(20000);
	close(pair[0]);
	usleep(20000);
	look("reset", pair[1]);
	moved("its error", read(pair[1], text, sizeof text));
	moved("then", read(pair[1], text, sizeof text));
	moved("write", write(pair[1], "x", 1));
	close(pair[1]);

	open_pair();
	struct linger none = { 1, 0 };
	setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &none, sizeof none);
	close(pair[0]);
	usleep(20000);
	say("error %d", get(pair[1], SOL_SOCKET, SO_ERROR) == ECONNRESET);
	close(pair[1]);

	int server = listener(5), client = new_socket(AF_INET, 0);
	need(connect_to(client, "127.0.0.1", port_of(server)) == 0, "connect");
	close(server);
	usleep(20000);
	moved("never accepted", read(client, text, 1));
	close(client);
	tell("no way", shutdown(client, SHUT_RD));
}

static int late_port;

static void *accepts_late(void *server)
{
	usleep(30000);
	close(accept(*(int *)server, NULL, NULL));
	return NULL;
}

static void *connects_late(void *unused)
{
	(void)unused;
	usleep(30000);
	int fd = new_socket(AF_INET, 0);
	need(connect_to(fd, "127.0.0.1", late_port) == 0, "connect");
	return NULL;
}

static void *fills(void *from)
{
	need(write(pair[0], from, 500000) == 500000, "write");
	shutdown(pair[0], SHUT_WR);
	return NULL;
}

static void waits(void)
{
	pthread_t thread;
	int server = listener(0);
	late_port = port_of(server);
	need(pthread_create(&thread, NULL, connects_late, NULL) == 0, "pthread_create");
	int accepted = accept(server, NULL, NULL);
	say("one comes: %d", accepted >= 0);
	pthread_join(thread, NULL);
	close(accepted);
	int first = new_socket(AF_INET, 0), second = new_socket(AF_INET, SOCK_NONBLOCK);
	need(connect_to(first, "127.0.0.1", late_port) == 0, "connect");
	tell("no room", connect_to(second, "127.0.0.1", late_port));
	look("not yet", second);
	tell("again", connect_to(second, "127.0.0.1", late_port));
	moved("not yet", read(second, &thread, 1));
	need(pthread_create(&thread, NULL, accepts_late, &server) == 0, "pthread_create");
	struct pollfd one = { second, POLLOUT, 0 };
	say("poll until there is: %d", poll(&one, 1, 5000));
	pthread_join(thread, NULL);
	tell("connected", connect_to(second, "127.0.0.1", late_port));
	tell("once", connect_to(second, "127.0.0.1", late_port));
	close(first);
	close(second);
	close(server);

	static char big[500000], copy[500000];
	for (size_t i = 0; i < sizeof big; i++)
		big[i] = i * 7 % 251;
	open_pair();
	need(pthread_create(&thread, NULL, fills, big) == 0, "pthread_create");
	size_t done = 0;
	for (ssize_t count; (count = read(pair[1], copy + done, sizeof copy - done)) > 0;)
		done += count;
	pthread_join(thread, NULL);
	say("many: %d, the same: %d", (int)done, memcmp(big, copy, sizeof big) == 0);
	close_pair();

	server = listener(5);
	int client = new_socket(AF_INET, SOCK_NONBLOCK), set = epoll_create1(0);
	tell("does not wait", connect_to(client, "127.0.0.1", port_of(server)));
	struct epoll_event event = { .events = EPOLLOUT | EPOLLIN | EPOLLET };
	need(epoll_ctl(set, EPOLL_CTL_ADD, client, &event) == 0, "epoll_ctl");
	int got = epoll_wait(set, &event, 1, 1000);
	say("epoll: %d %#x", got, event.events);
	say("error %d", get(client, SOL_SOCKET, SO_ERROR));
	accepted = accept(server, NULL, NULL);
	need(write(accepted, "x", 1) == 1, "write");
	got = epoll_wait(set, &event, 1, 1000);
	say("epoll: %d %#x", got, event.events);
	close(accepted);
	got = epoll_wait(set, &event, 1, 1000);
	say("epoll: %d %#x", got, event.events);
	close(set);
	close(client);
	close(server);
}

static void versions(void)
{
	int server = new_socket(AF_INET6, 0), client = new_socket(AF_INET, 0);
	say("only six: %d", get(server, IPPROTO_IPV6, IPV6_V6ONLY));
	need(bind_six(server, "::", 0) == 0 && listen(server, 5) == 0, "listen");
	int port = port_of(server);
	tell("by four", connect_to(client, "127.0.0.1", port));
	int accepted = accept(server, NULL, NULL);
	name_of("the accepted", accepted, getsockname, port);
	name_of("its peer", accepted, getpeername, port_of(client));
	name_of("the client", client, getsockname, -1);
	close(accepted);
	close(client);
	client = new_socket(AF_INET6, 0);
	tell("by six", connect_six(client, "::1", port));
	accepted = accept(server, NULL, NULL);
	name_of("the accepted", accepted, getsockname, port);
	name_of("its peer", accepted, getpeername, port_of(client));
	close(accepted);
	close(client);
	client = new_socket(AF_INET6, 0);
	tell("by four in six", connect_six(client, "::ffff:127.0.0.1", port));
	name_of("the client", client, getsockname, -1);
	name_of("its peer", client, getpeername, port);
	close(client);
	close(server);
	server = new_socket(AF_INET6, 0);
	set(server, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	need(bind_six(server, "::1", 0) == 0 && listen(server, 5) == 0, "listen");
	client = new_socket(AF_INET, 0);
	tell("only six", connect_to(client, "127.0.0.1", port_of(server)));
	close(client);
	close(server);
}

int main(void)
{
	enter_folder();
	errors();
	claims();
	talks();
	options();
	ends();
	waits();
	versions();
	return 0;
}
