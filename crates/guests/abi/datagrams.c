/* Datagrams and packets: Unix ones and UDP. */
#include "abi.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PATH = offsetof(struct sockaddr_un, sun_path) };

static int pair[2];

static void moved(const char *what, ssize_t count)
{
	if (count < 0)
		tell(what, count);
	else
		say("%s: %d", what, (int)count);
}

static void look(const char *what, int fd)
{
	struct pollfd one = { fd, POLLIN | POLLOUT | POLLRDHUP, 0 };
	int ready = poll(&one, 1, 0);
	say("%s: %d%s%s%s%s%s", what, ready, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "",
		one.revents & POLLRDHUP ? " rdhup" : "", one.revents & POLLHUP ? " hup" : "", one.revents & POLLERR ? " err" : "");
}

static socklen_t address(struct sockaddr_un *to, const char *name)
{
	memset(to, 0, sizeof *to);
	to->sun_family = AF_UNIX;
	strcpy(to->sun_path, name);
	if (name[0] != '@')
		return PATH + strlen(name) + 1;
	to->sun_path[0] = 0;
	return PATH + strlen(name);
}

static int named(const char *name, int type)
{
	struct sockaddr_un to;
	socklen_t size = address(&to, name);
	int fd = socket(AF_UNIX, type, 0);
	need(fd >= 0 && bind(fd, (void *)&to, size) == 0, "bind");
	return fd;
}

static int connect_to(int fd, const char *name)
{
	struct sockaddr_un to;
	socklen_t size = address(&to, name);
	return connect(fd, (void *)&to, size);
}

static ssize_t send_to(int fd, const char *name, const char *text)
{
	struct sockaddr_un to;
	socklen_t size = address(&to, name);
	return sendto(fd, text, strlen(text), 0, (void *)&to, size);
}

static void get(const char *what, int fd, size_t room, int flags)
{
	struct sockaddr_un from;
	socklen_t size = sizeof from;
	char text[100] = "";
	memset(&from, 0, sizeof from);
	ssize_t count = recvfrom(fd, text, room, flags, (void *)&from, &size);
	if (count < 0) {
		tell(what, -1);
		return;
	}
	if (size > PATH && from.sun_path[0] == 0)
		from.sun_path[0] = '@';
	say("%s: %d '%.*s' from '%.*s', %d bytes", what, (int)count, (int)room, text,
		size > PATH ? (int)(size - PATH) : 0, from.sun_path, (int)size);
}

static void boundaries(int type)
{
	need(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, pair) == 0, "socketpair");
	look("empty", pair[0]);
	get("none", pair[1], 10, 0);
	moved("send", send(pair[0], "one", 3, 0));
	moved("write", write(pair[0], "second", 6));
	moved("empty", send(pair[0], "", 0, 0));
	moved("send", send(pair[0], "last", 4, 0));
	look("some", pair[1]);
	get("peek", pair[1], 10, MSG_PEEK);
	get("whole", pair[1], 10, 0);
	get("peek the length", pair[1], 2, MSG_PEEK | MSG_TRUNC);
	get("cut", pair[1], 3, 0);
	get("empty", pair[1], 10, 0);
	struct iovec parts[2] = { { "left", 4 }, { "right", 5 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	moved("a message", sendmsg(pair[0], &message, 0));
	char text[8] = "", more[3] = "";
	moved("read", read(pair[1], text, 2));
	struct iovec into[2] = { { text, 4 }, { more, 2 } };
	struct msghdr got = { .msg_iov = into, .msg_iovlen = 2, .msg_flags = -1 };
	moved("cut", recvmsg(pair[1], &got, 0));
	say("'%s' '%s' flags %#x", text, more, got.msg_flags);
	moved("to nowhere", (send(pair[0], "x", 1, 0), recv(pair[1], nowhere, 1, 0)));
	moved("it is gone", recv(pair[1], text, 1, 0));
	moved("from nowhere", send(pair[0], nowhere, 1, 0));
	static char big[300000];
	moved("the largest", send(pair[0], big, 100000, 0));
	moved("it comes", recv(pair[1], big, sizeof big, 0));
	int sent = 0;
	while (send(pair[0], big, 1000, 0) == 1000)
		sent++;
	tell("full", -1);
	say("several: %d", sent > 1);
	struct pollfd one = { pair[0], POLLOUT, 0 };
	int waits = poll(&one, 1, 0) == 0;
	while (recv(pair[1], big, sizeof big, 0) == 1000)
		sent--;
	say("all came: %d, waits %d, room %d", sent == 0, waits || type == SOCK_SEQPACKET, poll(&one, 1, 0));
	fcntl(pair[1], F_SETFL, 0);
	tell("shut", shutdown(pair[0], SHUT_WR));
	moved("sent", send(pair[0], "x", 1, MSG_NOSIGNAL));
	look("shut", pair[0]);
	close(pair[0]);
	if (type == SOCK_SEQPACKET)
		moved("the end", recv(pair[1], text, 1, 0));
	look("alone", pair[1]);
	moved("to nobody", send(pair[1], "x", 1, MSG_NOSIGNAL));
	close(pair[1]);
}

static void names(void)
{
	int server = named("server", SOCK_DGRAM), client = named("@client", SOCK_DGRAM), other = socket(AF_UNIX, SOCK_DGRAM, 0);
	moved("nobody there", send_to(client, "nobody", "x"));
	moved("no name", send(client, "x", 1, 0));
	moved("to the server", send_to(client, "server", "hello"));
	moved("without a name", send_to(other, "server", "anonymous"));
	get("the first", server, 20, 0);
	get("the second", server, 20, 0);
	tell("connect", connect_to(client, "server"));
	moved("send", send(client, "connected", 9, 0));
	get("it", server, 20, 0);
	moved("an answer", send_to(server, "@client", "answer"));
	get("it", client, 20, 0);
	moved("a stranger", send_to(other, "@client", "x"));
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	tell("disconnect", connect(client, &none, sizeof none));
	moved("no name", send(client, "x", 1, 0));
	moved("a stranger", send_to(other, "@client", "x"));
	get("it", client, 20, MSG_DONTWAIT);
	tell("connect", connect_to(client, "server"));
	close(server);
	moved("closed", send(client, "x", 1, 0));
	tell("listen", listen(client, 1));
	tell("accept", accept(client, NULL, NULL));
	int stream = named("stream", SOCK_STREAM);
	need(listen(stream, 1) == 0, "listen");
	tell("another type", connect_to(other, "stream"));
	moved("another type", send_to(other, "stream", "x"));
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	tell("any name", bind(other, (void *)&any, PATH));
	socklen_t size = sizeof any;
	tell("its name", getsockname(other, (void *)&any, &size));
	say("%d bytes, abstract: %d", (int)size, any.sun_path[0] == 0);
	close(stream);
	close(client);
	close(other);
}

static void *answers(void *server)
{
	char text[10];
	int accepted = accept(*(int *)server, NULL, NULL);
	for (ssize_t count; (count = recv(accepted, text, sizeof text, 0)) > 0;)
		send(accepted, text, count, 0);
	close(accepted);
	return NULL;
}

static void packets(void)
{
	int server = named("@packets", SOCK_SEQPACKET), client = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	pthread_t thread;
	moved("unconnected", send(client, "x", 1, MSG_NOSIGNAL));
	moved("unconnected", recv(client, &thread, 1, 0));
	tell("no listener", connect_to(client, "@packets"));
	need(listen(server, 1) == 0, "listen");
	need(pthread_create(&thread, NULL, answers, &server) == 0, "pthread_create");
	tell("connect", connect_to(client, "@packets"));
	moved("one", send(client, "one", 3, 0));
	moved("two", send(client, "two2", 4, 0));
	get("one", client, 20, 0);
	get("two", client, 20, 0);
	shutdown(client, SHUT_WR);
	get("the end", client, 20, 0);
	pthread_join(thread, NULL);
	close(client);
	close(server);
}

static struct sockaddr_in four(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return at;
}

static int port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t size = sizeof at;
	need(getsockname(fd, (void *)&at, &size) == 0, "getsockname");
	return ntohs(at.sin_port);
}

static void udp_get(const char *what, int fd, int port)
{
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	char text[100] = "";
	ssize_t count = recvfrom(fd, text, sizeof text, 0, (void *)&from, &size);
	if (count < 0)
		tell(what, -1);
	else
		say("%s: %d '%s', %d bytes, %s, the port: %d", what, (int)count, text, (int)size, inet_ntoa(from.sin_addr),
			ntohs(from.sin_port) == port);
}

static void udp(void)
{
	int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP);
	struct sockaddr_in at = four(0);
	char byte;
	look("new", client);
	moved("no address", send(client, "x", 1, 0));
	tell("no peer", shutdown(server, SHUT_WR));
	close(server);
	server = socket(AF_INET, SOCK_DGRAM, 0);
	need(bind(server, (void *)&at, sizeof at) == 0, "bind");
	int port = port_of(server);
	at = four(port);
	tell("the same port", bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)&at, sizeof at));
	moved("send", sendto(client, "hello", 5, 0, (void *)&at, sizeof at));
	say("it has a port: %d", port_of(client) >= 32768);
	udp_get("it", server, port_of(client));
	moved("empty", sendto(client, "", 0, 0, (void *)&at, sizeof at));
	look("an empty one", server);
	udp_get("it", server, port_of(client));
	static char big[70000];
	moved("too large", sendto(client, big, 65508, 0, (void *)&at, sizeof at));
	moved("the largest", sendto(client, big, 65507, 0, (void *)&at, sizeof at));
	moved("it", recv(server, big, sizeof big, 0));
	tell("connect", connect(client, (void *)&at, sizeof at));
	moved("send", send(client, "one", 3, 0));
	moved("send", write(client, "two", 3));
	struct mmsghdr many[3];
	char texts[3][10];
	struct iovec parts[3];
	memset(many, 0, sizeof many);
	memset(texts, 0, sizeof texts);
	for (int i = 0; i < 3; i++) {
		parts[i] = (struct iovec){ texts[i], 9 };
		many[i].msg_hdr.msg_iov = &parts[i];
		many[i].msg_hdr.msg_iovlen = 1;
	}
	moved("many", recvmmsg(server, many, 3, MSG_WAITFORONE, NULL));
	say("%d '%s' %d '%s'", many[0].msg_len, texts[0], many[1].msg_len, texts[1]);
	moved("many", sendmmsg(client, many, 2, 0));
	say("%d %d", many[0].msg_len, many[1].msg_len);
	moved("one by one", recv(server, texts[2], 9, 0) + recv(server, texts[2], 9, 0));
	int stranger = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = four(port_of(client));
	moved("a stranger", sendto(stranger, "x", 1, 0, (void *)&to, sizeof to));
	usleep(20000);
	moved("is not heard", recv(client, &byte, 1, 0));
	moved("the peer", sendto(server, "peer", 4, 0, (void *)&to, sizeof to));
	udp_get("it", client, port);
	close(server);
	moved("nobody", send(client, "x", 1, 0));
	usleep(20000);
	look("nobody", client);
	moved("its error", recv(client, &byte, 1, 0));
	moved("then", recv(client, &byte, 1, 0));
	moved("nobody", send(client, "x", 1, 0));
	usleep(20000);
	moved("its error", send(client, "x", 1, 0));
	usleep(20000);
	int value = -1;
	socklen_t size = sizeof value;
	need(getsockopt(client, SOL_SOCKET, SO_ERROR, &value, &size) == 0, "getsockopt");
	say("its error: %d", value == ECONNREFUSED);
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	tell("disconnect", connect(client, &none, sizeof none));
	moved("no address", send(client, "x", 1, 0));
	tell("listen", listen(client, 1));
	close(stranger);
	close(client);
}

int main(void)
{
	enter_folder();
	boundaries(SOCK_DGRAM);
	boundaries(SOCK_SEQPACKET);
	names();
	packets();
	udp();
	return 0;
}
