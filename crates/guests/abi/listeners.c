/* Unix stream sockets with names: one listens, others connect. */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PATH = offsetof(struct sockaddr_un, sun_path) };

static int new_socket(int flags)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | flags, 0);
	need(fd >= 0, "socket");
	return fd;
}

/* An address, and its size. A name that begins with @ is abstract. */
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

static int bind_to(int fd, const char *name)
{
	struct sockaddr_un to;
	socklen_t size = address(&to, name);
	return bind(fd, (void *)&to, size);
}

static int connect_to(int fd, const char *name)
{
	struct sockaddr_un to;
	socklen_t size = address(&to, name);
	return connect(fd, (void *)&to, size);
}

static int listener(const char *name, int most)
{
	int fd = new_socket(0);
	need(bind_to(fd, name) == 0, "bind");
	need(listen(fd, most) == 0, "listen");
	return fd;
}

static void name_of(const char *what, int fd, int (*get)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_un name;
	socklen_t size = sizeof name;
	memset(&name, 0, sizeof name);
	if (get(fd, (void *)&name, &size) == -1) {
		tell(what, -1);
		return;
	}
	if (name.sun_path[0] == 0)
		name.sun_path[0] = size > PATH ? '@' : 0;
	say("%s: family %d, %d bytes, '%.*s'", what, name.sun_family, (int)size, (int)(size - PATH), name.sun_path);
}

static void look(const char *what, int fd)
{
	struct pollfd one = { fd, POLLIN | POLLOUT, 0 };
	int ready = poll(&one, 1, 0);
	say("%s: %d%s%s%s", what, ready, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "",
		one.revents & POLLHUP ? " hup" : "");
}

static void errors(void)
{
	struct sockaddr_un to;
	struct stat stat;
	char byte;
	tell("no domain", socket(99, SOCK_STREAM, 0));
	tell("another type", socket(AF_UNIX, SOCK_RDM, 0));
	tell("another protocol", socket(AF_UNIX, SOCK_STREAM, 7));
	int fd = new_socket(0);
	look("new", fd);
	name_of("its name", fd, getsockname);
	name_of("its peer", fd, getpeername);
	tell("read", read(fd, &byte, 1));
	tell("send", send(fd, "x", 1, MSG_NOSIGNAL));
	tell("listen without a name", listen(fd, 1));
	tell("accept", accept(fd, NULL, NULL));
	tell("nothing there", connect_to(fd, "nothing"));
	close(open("file", O_CREAT | O_RDWR, 0600));
	tell("a file", connect_to(fd, "file"));
	tell("an abstract name", connect_to(fd, "@nobody's"));
	tell("a folder is missing", bind_to(fd, "missing/socket"));
	tell("a file has the name", bind_to(fd, "file"));
	socklen_t size = address(&to, "socket");
	tell("too short", bind(fd, (void *)&to, 1));
	tell("too long", bind(fd, (void *)&to, sizeof to + 1));
	tell("nowhere", bind(fd, (void *)nowhere, size));
	to.sun_family = AF_INET;
	tell("another family", bind(fd, (void *)&to, size));
	umask(027);
	tell("bind", bind_to(fd, "socket"));
	need(lstat("socket", &stat) == 0, "lstat");
	say("a socket: %d, mode %o, links %d", S_ISSOCK(stat.st_mode), stat.st_mode & 07777, (int)stat.st_nlink);
	tell("open", open("socket", O_RDWR));
	tell("a second name", link("socket", "other"));
	tell("bind again", bind_to(fd, "third"));
	name_of("its name", fd, getsockname);
	int other = new_socket(0);
	tell("the same name", bind_to(other, "socket"));
	tell("it does not listen", connect_to(other, "socket"));
	tell("listen", listen(fd, 1));
	tell("connect while it listens", connect_to(fd, "socket"));
	look("listens", fd);
	int value;
	size = sizeof value;
	need(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0, "getsockopt");
	say("listens: %d", value);
	tell("set an option", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, size));
	tell("too short", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, 1));
	tell("from nowhere", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, nowhere, size));
	tell("no option", setsockopt(fd, SOL_SOCKET, 9999, &value, size));
	tell("another level", setsockopt(fd, 6, 1, &value, size));
	tell("read from it", read(fd, &byte, 1));
	tell("by the second name", connect_to(other, "other"));
	tell("again", connect_to(other, "other"));
	close(other);
	close(fd);
	other = new_socket(0);
	tell("closed", connect_to(other, "socket"));
	close(other);
	unlink("socket");
	unlink("other");
}

/* Bytes go both ways, even before the socket is accepted. */
static void talks(const char *name)
{
	char text[10] = "";
	int server = listener(name, 5), client = new_socket(0);
	tell("connect", connect_to(client, name));
	look("waits to be accepted", server);
	look("connected", client);
	need(write(client, "hello", 5) == 5, "write");
	struct sockaddr_un from;
	socklen_t size = sizeof from;
	int accepted = accept4(server, (void *)&from, &size, SOCK_CLOEXEC);
	need(accepted >= 0, "accept4");
	say("from %d bytes, closes: %d", (int)size, fcntl(accepted, F_GETFD));
	look("none waits", server);
	say("read: %d '%s'", (int)read(accepted, text, sizeof text), text);
	need(write(accepted, "answer", 6) == 6, "write");
	say("read: %d '%s'", (int)read(client, text, sizeof text), text);
	name_of("the client", client, getsockname);
	name_of("its peer", client, getpeername);
	name_of("the accepted", accepted, getsockname);
	name_of("its peer", accepted, getpeername);
	memset(&from, 0, sizeof from);
	size = sizeof from;
	need(write(accepted, "x", 1) == 1, "write");
	need(recvfrom(client, text, 1, 0, (void *)&from, &size) == 1, "recvfrom");
	say("from %d bytes", (int)size);
	close(server);
	need(write(client, "more", 4) == 4, "write");
	say("goes on: %d", (int)read(accepted, text, sizeof text));
	close(client);
	say("the end: %d", (int)read(accepted, text, sizeof text));
	close(accepted);
	client = new_socket(0);
	tell("nobody listens", connect_to(client, name));
	close(client);
}

static int server, client;

static void *connects_late(void *unused)
{
	(void)unused;
	usleep(20000);
	need(connect_to(client, "@late") == 0, "connect");
	return NULL;
}

static void *accepts_late(void *unused)
{
	(void)unused;
	usleep(20000);
	close(accept(server, NULL, NULL));
	return NULL;
}

static void *closes_late(void *unused)
{
	(void)unused;
	usleep(20000);
	close(server);
	return NULL;
}

static pthread_t later(void *(*work)(void *))
{
	pthread_t thread;
	need(pthread_create(&thread, NULL, work, NULL) == 0, "pthread_create");
	return thread;
}

static void waits(void)
{
	char byte;
	server = listener("@late", 0);
	client = new_socket(0);
	pthread_t thread = later(connects_late);
	int accepted = accept(server, NULL, NULL);
	say("one comes: %d", accepted >= 0);
	pthread_join(thread, NULL);
	close(client);
	close(accepted);
	client = new_socket(0);
	thread = later(connects_late);
	struct pollfd one = { server, POLLIN, 0 };
	say("poll until one comes: %d", poll(&one, 1, 5000));
	pthread_join(thread, NULL);
	int second = new_socket(SOCK_NONBLOCK);
	tell("no room", connect_to(second, "@late"));
	fcntl(second, F_SETFL, 0);
	thread = later(accepts_late);
	tell("waits for room", connect_to(second, "@late"));
	pthread_join(thread, NULL);
	int third = new_socket(0);
	thread = later(closes_late);
	tell("until it is closed", connect_to(third, "@late"));
	pthread_join(thread, NULL);
	tell("never accepted", read(second, &byte, 1));
	say("then the end: %d", (int)read(second, &byte, 1));
	close(client);
	close(second);
	close(third);
	server = listener("@late", 5);
	fcntl(server, F_SETFL, O_NONBLOCK);
	tell("none waits", accept(server, NULL, NULL));
	client = new_socket(0);
	need(bind_to(client, "@client") == 0, "bind");
	need(connect_to(client, "@late") == 0, "connect");
	accepted = accept(server, NULL, NULL);
	say("does not wait: %d", accepted >= 0 && (fcntl(accepted, F_GETFL) & O_NONBLOCK) == 0);
	name_of("its peer", accepted, getpeername);
	close(client);
	close(server);
	close(accepted);
}

static int echoes(void)
{
	for (int i = 0; i < 3; i++) {
		char text[20];
		int accepted = accept(server, NULL, NULL);
		for (ssize_t count; (count = read(accepted, text, sizeof text)) > 0;)
			need(write(accepted, text, count) == count, "write");
		close(accepted);
	}
	return 0;
}

/* Another process serves several. */
static void processes(void)
{
	server = listener("socket", 5);
	pid_t child = spawn(echoes);
	close(server);
	for (int i = 0; i < 3; i++) {
		char text[20] = "";
		int fd = new_socket(0);
		need(connect_to(fd, "socket") == 0, "connect");
		need(send(fd, "echo", 4, 0) == 4, "send");
		say("echo: %d '%s'", (int)recv(fd, text, 4, MSG_WAITALL), text);
		shutdown(fd, SHUT_WR);
		say("the end: %d", (int)recv(fd, text, 4, 0));
		close(fd);
	}
	reap("child", child);
}

int main(void)
{
	enter_folder();
	errors();
	talks("socket");
	unlink("socket");
	talks("@abstract name");
	waits();
	processes();
	return 0;
}
