/* Pipes and poll. */
#include "abi.h"
#include <poll.h>

static int ends[2];
static volatile int broken;

static void note(int number)
{
	broken += number == SIGPIPE;
}

static void look(const char *what, int file, short events, int limit)
{
	struct pollfd one = { file, events, 0 };
	int count = poll(&one, 1, limit);
	say("%s: %d%s%s%s%s%s", what, count, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "",
	    one.revents & POLLHUP ? " hangup" : "", one.revents & POLLERR ? " error" : "",
	    one.revents & POLLNVAL ? " invalid" : "");
}

static int echo(void)
{
	char text[64];
	close(ends[1]);
	ssize_t got, sum = 0;
	while ((got = read(ends[0], text, sizeof text)) > 0)
		sum += got;
	return sum;
}

static int write_late(void)
{
	usleep(20000);
	return write(ends[1], "late", 4) != 4;
}

static void fresh(void)
{
	close(ends[0]);
	close(ends[1]);
	need(pipe(ends) == 0, "pipe");
}

static void capacity(void)
{
	static char block[PAGE];
	fresh();
	need(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0, "F_SETFL");
	long sum = 0;
	ssize_t put;
	while ((put = write(ends[1], block, sizeof block)) > 0)
		sum += put;
	say("room for %ld", sum);
	tell("no more", put);
	look("full", ends[1], POLLOUT, 0);
	need(read(ends[0], block, sizeof block) == sizeof block, "read");
	look("less full", ends[1], POLLOUT, 0);
}

/* A limit that is not needed leaves nothing behind: there are more than would fit into memory for as long as they last. */
static void limits(void)
{
	enum { CALLS = 20000 };
	int ready = 0;
	struct pollfd one = { ends[0], POLLIN, 0 };
	for (int i = 0; i < CALLS; i++)
		ready += poll(&one, 1, 600000) == 1;
	say("ready at once: %d", ready);
}

/* Bytes that fit, without waiting for room. */
static long fill(void)
{
	static char block[PAGE];
	long sum = 0;
	ssize_t put;
	while ((put = write(ends[1], block, sizeof block)) > 0)
		sum += put;
	return sum;
}

static void sizes(void)
{
	char byte;
	fresh();
	need(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0, "F_SETFL");
	say("size: %d", fcntl(ends[0], F_GETPIPE_SZ));
	say("set: %d", fcntl(ends[1], F_SETPIPE_SZ, 2 * PAGE));
	say("room for %ld", fill());
	say("larger: %d", fcntl(ends[0], F_SETPIPE_SZ, 5 * PAGE));
	say("room for %ld more", fill());
	tell("too small", fcntl(ends[0], F_SETPIPE_SZ, 4 * PAGE));
	tell("too large", fcntl(ends[0], F_SETPIPE_SZ, -1));
	say("size: %d", fcntl(ends[1], F_GETPIPE_SZ));
	fresh();
	need(write(ends[1], "a", 1) == 1, "write");
	say("smallest: %d", fcntl(ends[1], F_SETPIPE_SZ, 1));
	need(read(ends[0], &byte, 1) == 1, "read");
	say("what was there: %c", byte);
	tell("no pipe", fcntl(open("/dev/null", O_RDONLY), F_GETPIPE_SZ));
}

int main(void)
{
	char text[16] = { 0 };
	need(pipe(ends) == 0, "pipe");
	look("empty", ends[0], POLLIN, 0);
	look("wait for nothing", ends[0], POLLIN, 10);
	look("to write", ends[1], POLLOUT, 0);
	say("write: %zd", write(ends[1], "hello", 5));
	look("something", ends[0], POLLIN, -1);
	limits();
	say("part: %zd <%s>", read(ends[0], text, 2), text);
	say("rest: %zd <%s>", read(ends[0], text, sizeof text), text);
	pid_t child = spawn(echo);
	for (int i = 0; i < 20; i++)
		need(write(ends[1], "12345", 5) == 5, "write");
	close(ends[1]);
	reap("bytes that the child got", child);
	look("no writer", ends[0], POLLIN, -1);
	say("end: %zd", read(ends[0], text, 1));
	fresh();
	child = spawn(write_late);
	say("sleep until: %zd", read(ends[0], text, sizeof text));
	reap("writer", child);
	child = spawn(write_late);
	look("poll until", ends[0], POLLIN, -1);
	reap("writer", child);
	signal(SIGPIPE, note);
	close(ends[0]);
	tell("no reader", write(ends[1], "x", 1));
	say("signals: %d", broken);
	look("no reader", ends[1], POLLOUT, 0);
	look("closed", 77, POLLIN, 0);
	capacity();
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	char block[PAGE];
	ssize_t got;
	while ((got = read(ends[0], block, sizeof block)) > 0)
		;
	tell("nothing to read", got);
	int both[2];
	need(pipe2(both, O_CLOEXEC) == 0, "pipe2");
	say("close on exec: %d", fcntl(both[0], F_GETFD));
	tell("wrong end", read(both[1], text, 1));
	tell("no place", lseek(both[0], 0, SEEK_CUR));
	sizes();
	return 0;
}
