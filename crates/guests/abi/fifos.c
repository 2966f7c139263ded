/* Pipes with names, and other files that mknod makes. */
#include "abi.h"
#include <poll.h>
#include <sys/sysmacros.h>

static int write_hello(void)
{
	int file = open("fifo", O_WRONLY);
	need(file >= 0, "open");
	need(write(file, "hello", 5) == 5, "write");
	return 0;
}

static int read_all(void)
{
	char text[16];
	int file = open("fifo", O_RDONLY), total = 0;
	ssize_t got;
	while ((got = read(file, text, sizeof text)) > 0)
		total += got;
	return got < 0 ? 99 : total;
}

static void nothing(int signal)
{
	(void)signal;
}

static int interrupted(void)
{
	struct sigaction action = { .sa_handler = nothing };
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	return open("fifo", O_RDONLY) >= 0 ? 0 : errno == EINTR ? 1 : 2;
}

static void kind(const char *path)
{
	struct stat data;
	need(lstat(path, &data) == 0, path);
	say("%s: mode %o, links %d, size %d", path, data.st_mode, (int)data.st_nlink, (int)data.st_size);
}

static void ready(const char *what, int file)
{
	struct pollfd one = { file, POLLIN | POLLOUT, 0 };
	int count = poll(&one, 1, 0);
	say("%s: %d, %#x", what, count, one.revents);
}

static void nodes(void)
{
	umask(022);
	tell("file", mknod("file", S_IFREG | 0666, 0));
	kind("file");
	tell("no kind", mknod("plain", 0640, 0));
	kind("plain");
	tell("again", mknod("file", S_IFREG | 0600, 0));
	tell("folder", mknod("folder", S_IFDIR | 0700, 0));
	tell("nonsense", mknod("nonsense", S_IFMT | 0600, 0));
	tell("nowhere", mknod("there/is/none", S_IFIFO | 0600, 0));
	tell("in a file", mknod("file/fifo", S_IFIFO | 0600, 0));
	tell("bad address", mknod(nowhere, S_IFIFO | 0600, 0));
	tell("bad folder", mknodat(77, "fifo", S_IFIFO | 0600, 0));
	if (mknod("zero", S_IFCHR | 0666, makedev(1, 5)) == 0) {
		int zero = open("zero", O_RDONLY);
		char byte = 1;
		/* Not where devices are left out (nodev). */
		if (zero < 0 || (read(zero, &byte, 1) == 1 && byte == 0))
			errno = 0;
		close(zero);
	}
	say("a device: %d", errno == 0);
	tell("fifo", mkfifo("fifo", 0666));
	kind("fifo");
}

static void transfers(void)
{
	char text[16];
	pid_t child = spawn(write_hello);
	int file = open("fifo", O_RDONLY);
	ssize_t got = read(file, text, sizeof text);
	say("read: %.*s", (int)got, text);
	say("end: %zd", read(file, text, sizeof text));
	reap("writer", child);
	struct stat data;
	need(fstat(file, &data) == 0, "fstat");
	say("open: fifo %d, mode %o", S_ISFIFO(data.st_mode), data.st_mode & 0777);
	tell("seek", lseek(file, 0, SEEK_SET));
	tell("write", write(file, "x", 1));
	close(file);
	child = spawn(read_all);
	file = open("fifo", O_WRONLY);
	need(write(file, "some bytes", 10) == 10, "write");
	int other = open("fifo", O_WRONLY);
	close(file);
	need(write(other, "more", 4) == 4, "write");
	close(other);
	reap("reader", child);
	reap("interrupted", spawn(interrupted));
}

static int write_late(void)
{
	usleep(20000);
	return write(open("fifo", O_RDWR), "late", 4) != 4;
}

static int read_late(void)
{
	static char block[PAGE];
	usleep(20000);
	return read(open("fifo", O_RDWR), block, sizeof block) != sizeof block;
}

static void awaited(const char *what, int file, short event, int (*action)(void))
{
	struct pollfd one = { file, event, 0 };
	pid_t child = spawn(action);
	int count = poll(&one, 1, -1);
	say("%s: %d, %#x", what, count, one.revents);
	reap(what, child);
}

/* Who has both ends waits for bytes or for room, whichever it asks for. */
static void becoming_ready(int both)
{
	static char block[PAGE];
	char text[4];
	need(read(both, text, 4) == 4, "read");
	awaited("until there are bytes", both, POLLIN, write_late);
	need(read(both, text, 4) == 4 && fcntl(both, F_SETFL, O_NONBLOCK) == 0, "read");
	while (write(both, block, sizeof block) > 0)
		;
	awaited("until there is room", both, POLLOUT, read_late);
}

static void at_once(void)
{
	char text[16];
	tell("as a folder", open("fifo", O_RDONLY | O_DIRECTORY));
	tell("no reader", open("fifo", O_WRONLY | O_NONBLOCK));
	int in = open("fifo", O_RDONLY | O_NONBLOCK);
	say("no writer: %d, read %zd", in >= 0, read(in, text, 1));
	int out = open("fifo", O_WRONLY | O_NONBLOCK);
	say("now a reader: %d", out >= 0);
	tell("nothing yet", read(in, text, 1));
	ready("reader", in);
	ready("writer", out);
	need(write(out, "ab", 2) == 2, "write");
	ready("reader", in);
	close(in);
	signal(SIGPIPE, SIG_IGN);
	tell("nobody reads", write(out, "c", 1));
	in = open("fifo", O_RDONLY | O_NONBLOCK);
	say("what was written stays: %zd", read(in, text, sizeof text));
	close(in);
	close(out);
	int both = open("fifo", O_RDWR);
	need(write(both, "both", 4) == 4, "write");
	ready("both", both);
	becoming_ready(both);
	close(both);
	both = open("fifo", O_RDWR | O_NONBLOCK);
	tell("gone with its last user", read(both, text, sizeof text));
	ready("both", both);
	close(both);
}

int main(void)
{
	enter_folder();
	nodes();
	transfers();
	at_once();
	tell("remove", unlink("fifo"));
	tell("removed", open("fifo", O_RDONLY));
	return 0;
}
