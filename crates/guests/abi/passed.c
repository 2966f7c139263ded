/* Control data of Unix sockets: descriptors and identities. */
#include "abi.h"
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static int pair[2];

static void open_pair(int type)
{
	need(socketpair(AF_UNIX, type, 0, pair) == 0, "socketpair");
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static ssize_t pass(const char *text, const int *files, int count)
{
	char control[CMSG_SPACE(10 * sizeof(int))];
	memset(control, 0, sizeof control);
	struct iovec part = { (char *)text, strlen(text) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), files, count * sizeof(int));
	return sendmsg(pair[0], &message, 0);
}

/* Receives, says what came, and returns the first descriptor. */
static int take(const char *what, size_t room, size_t space, int flags)
{
	char text[20] = "", control[200];
	struct iovec part = { text, room };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = space };
	int first = -1, files = 0, closes = 0, identities = 0, own = 0;
	ssize_t count = recvmsg(pair[1], &message, flags);
	if (count < 0) {
		tell(what, -1);
		return -1;
	}
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
		if (head->cmsg_type == SCM_RIGHTS) {
			int numbers[10];
			files = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(numbers, CMSG_DATA(head), files * sizeof(int));
			for (int i = 0; i < files; i++) {
				closes += fcntl(numbers[i], F_GETFD);
				if (i > 0)
					close(numbers[i]);
			}
			first = numbers[0];
		}
		if (head->cmsg_type == SCM_CREDENTIALS) {
			struct ucred who;
			memcpy(&who, CMSG_DATA(head), sizeof who);
			identities++;
			own = who.pid == getpid() && who.uid == getuid() && who.gid == getgid();
		}
	}
	say("%s: %d '%s', %d files, %d close, %d identities, own %d, flags %#x, %d bytes", what, (int)count, text, files, closes,
		identities, own, message.msg_flags, (int)message.msg_controllen);
	return first;
}

static void files(int type)
{
	char text[20] = "";
	int plain[2];
	open_pair(type);
	int file = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
	need(write(file, "content", 7) == 7, "write");
	say("pass: %d", (int)pass("with", &file, 1));
	close(file);
	int got = take("one", 20, 200, 0);
	say("at its offset: %d, read: %d", (int)lseek(got, 0, SEEK_CUR), (int)pread(got, text, 7, 0));
	say("'%s'", text);
	close(got);
	need(pipe(plain) == 0, "pipe");
	say("pass two: %d", (int)pass("two", plain, 2));
	got = take("two", 20, 200, MSG_CMSG_CLOEXEC);
	close(got);
	say("pass two: %d", (int)pass("two", plain, 2));
	close(take("no room for both", 20, CMSG_LEN(sizeof(int)), 0));
	say("pass two: %d", (int)pass("two", plain, 2));
	take("no room", 20, 0, 0);
	int wrong[2] = { plain[0], 999 };
	tell("no descriptor", pass("x", wrong, 2));
	say("pass: %d", (int)pass("peek", plain, 1));
	close(take("peek", 20, 200, MSG_PEEK));
	close(take("and take", 20, 200, 0));
	say("pass: %d", (int)pass("read", plain, 1));
	say("read: %d", (int)read(pair[1], text, 20));
	close(plain[0]);
	say("it is closed too: %d", (int)pass("x", &plain[1], 1));
	close(plain[1]);
	close_pair();
	/* A pipe ends when nobody has received its end. */
	open_pair(type);
	need(pipe(plain) == 0, "pipe");
	need(pass("x", &plain[1], 1) == 1, "pass");
	close(plain[1]);
	close_pair();
	say("the end: %d", (int)read(plain[0], text, 1));
	close(plain[0]);
}

/* Bytes of a stream do not mix with those that files came with. */
static void streams(void)
{
	open_pair(SOCK_STREAM);
	int file = open("file", O_RDWR);
	need(write(pair[0], "before", 6) == 6, "write");
	need(pass("with", &file, 1) == 4, "pass");
	need(write(pair[0], "after", 5) == 5, "write");
	need(pass("again", &file, 1) == 5, "pass");
	close(take("a part", 3, 200, 0));
	close(take("the rest", 20, 200, 0));
	close(take("a part of the next", 2, 200, 0));
	close(take("the rest", 20, 200, 0));
	close_pair();
	open_pair(SOCK_STREAM);
	need(pass("one", &file, 1) == 3 && pass("two", &file, 1) == 3, "pass");
	close(take("one", 20, 200, 0));
	close(take("two", 20, 200, 0));
	struct timeval limit = { 0, 20000 };
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	take("none", 20, 200, 0);
	close(file);
	close_pair();
}

/* A socket in a socket, in a socket, and so on. */
static void nested(void)
{
	int outer[2];
	open_pair(SOCK_DGRAM);
	for (int i = 0; i < 3; i++) {
		memcpy(outer, pair, sizeof outer);
		open_pair(SOCK_DGRAM);
		need(pass("x", outer, 2) == 1, "pass");
		close(outer[0]);
		close(outer[1]);
	}
	close_pair();
	say("nested ones are closed");
}

static void identities(int type)
{
	int on = 1;
	open_pair(type);
	struct ucred who = { 0, 1, 1 };
	socklen_t size = sizeof who;
	tell("the peer", getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &who, &size));
	if (type != SOCK_DGRAM)
		say("own: %d, %d bytes", who.pid == getpid() && who.uid == getuid() && who.gid == getgid(), (int)size);
	tell("ask", setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	need(write(pair[0], "x", 1) == 1, "write");
	take("an identity", 20, 200, 0);
	int file = open("file", O_RDWR);
	need(pass("both", &file, 1) == 4, "pass");
	close(take("both", 20, 200, 0));
	need(pass("both", &file, 1) == 4, "pass");
	close(take("no room for both", 20, CMSG_SPACE(sizeof who), 0));
	close(file);
	char control[CMSG_SPACE(sizeof who)];
	who = (struct ucred){ getpid(), getuid(), getgid() };
	struct iovec part = { "told", 4 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	memset(control, 0, sizeof control);
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_CREDENTIALS;
	head->cmsg_len = CMSG_LEN(sizeof who);
	memcpy(CMSG_DATA(head), &who, sizeof who);
	say("told: %d", (int)sendmsg(pair[0], &message, 0));
	take("told", 20, 200, 0);
	head->cmsg_len = 8;
	tell("too short", sendmsg(pair[0], &message, 0));
	head->cmsg_len = sizeof control + 1;
	tell("too long", sendmsg(pair[0], &message, 0));
	head->cmsg_len = CMSG_LEN(sizeof who);
	head->cmsg_type = 99;
	tell("no such", sendmsg(pair[0], &message, 0));
	head->cmsg_level = 99;
	say("another level: %d", (int)sendmsg(pair[0], &message, 0));
	close_pair();
}

static int child(void)
{
	char text[10] = "";
	int got = take("in a child", 20, 200, 0);
	say("read: %d", (int)read(got, text, sizeof text - 1));
	say("'%s'", text);
	return 0;
}

int main(void)
{
	enter_folder();
	files(SOCK_STREAM);
	files(SOCK_DGRAM);
	files(SOCK_SEQPACKET);
	streams();
	nested();
	identities(SOCK_STREAM);
	identities(SOCK_DGRAM);
	identities(SOCK_SEQPACKET);
	open_pair(SOCK_STREAM);
	int plain[2];
	need(pipe(plain) == 0 && write(plain[1], "handed", 6) == 6 && pass("here", plain, 1) == 4, "pass");
	reap("child", spawn(child));
	close_pair();
	return 0;
}
