/* Sets of interests in open files: epoll. */
#include "abi.h"
#include <pthread.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

static int set, in, out;

static int control(int operation, int file, uint32_t events, uint64_t word)
{
	struct epoll_event event = { .events = events, .data.u64 = word };
	return epoll_ctl(set, operation, file, &event);
}

static int by_word(const void *one, const void *other)
{
	uint64_t a = ((const struct epoll_event *)one)->data.u64, b = ((const struct epoll_event *)other)->data.u64;
	return (a > b) - (a < b);
}

/* The order of the events is not defined. */
static void look_for(const char *what, int most, int wait)
{
	struct epoll_event events[8];
	int count = epoll_wait(set, events, most, wait);
	if (count < 0) {
		tell(what, -1);
		return;
	}
	say("%s: %d", what, count);
	qsort(events, count, sizeof *events, by_word);
	for (int i = 0; i < count; i++)
		say("  %#x of %#llx", events[i].events, (unsigned long long)events[i].data.u64);
}

static void look(const char *what)
{
	look_for(what, 8, 0);
}

static void put(const char *text)
{
	need(write(out, text, strlen(text)) == (ssize_t)strlen(text), "write");
}

static void get(size_t bytes)
{
	char text[64];
	need(read(in, text, bytes) > 0, "read");
}

static void open_pipe(void)
{
	int ends[2];
	need(pipe(ends) == 0, "pipe");
	in = ends[0];
	out = ends[1];
}

static void errors(void)
{
	tell("size 0", epoll_create(0));
	tell("flags", epoll_create1(1));
	tell("no set", epoll_ctl(99, EPOLL_CTL_DEL, in, NULL));
	tell("no file", control(EPOLL_CTL_ADD, 99, EPOLLIN, 0));
	tell("a file in memory", control(EPOLL_CTL_ADD, open(".", O_RDONLY), EPOLLIN, 0));
	tell("itself", control(EPOLL_CTL_ADD, set, EPOLLIN, 0));
	tell("not a set", epoll_ctl(in, EPOLL_CTL_DEL, out, NULL));
	tell("no event", epoll_ctl(set, EPOLL_CTL_ADD, in, (struct epoll_event *)nowhere));
	tell("no such operation", control(7, in, EPOLLIN, 0));
	tell("change none", control(EPOLL_CTL_MOD, in, EPOLLIN, 0));
	tell("remove none", control(EPOLL_CTL_DEL, in, 0, 0));
	tell("add", control(EPOLL_CTL_ADD, in, EPOLLIN, 0x1234567812345678));
	tell("add again", control(EPOLL_CTL_ADD, in, EPOLLIN, 0));
	struct epoll_event event;
	tell("room for none", epoll_wait(set, &event, 0, 0));
	tell("wait at no set", epoll_wait(in, &event, 1, 0));
	char byte;
	tell("read", read(set, &byte, 1));
	tell("write", write(set, &byte, 1));
	put("x");
	tell("nowhere", epoll_wait(set, (struct epoll_event *)nowhere, 1, 0));
	look("still there");
	get(1);
}

static void levels(void)
{
	look("empty");
	put("abc");
	look("bytes");
	get(1);
	look("bytes left");
	get(2);
	look("none left");
	tell("want nothing", control(EPOLL_CTL_MOD, in, 0, 1));
	put("x");
	look("unwanted");
	look_for("unwanted, waiting", 8, 30);
	tell("want both", control(EPOLL_CTL_MOD, in, EPOLLIN | EPOLLOUT, 2));
	look("wanted");
	get(1);
	tell("the writer", control(EPOLL_CTL_ADD, out, EPOLLOUT, 3));
	look("room");
	put("x");
	look("both");
	struct epoll_event one, other;
	say("one: %d", epoll_wait(set, &one, 1, 0));
	say("the other: %d %d", epoll_wait(set, &other, 1, 0), one.data.u64 != other.data.u64);
	tell("remove the writer", control(EPOLL_CTL_DEL, out, 0, 0));
	look("the reader");
	get(1);
}

static void changes(void)
{
	tell("on changes", control(EPOLL_CTL_MOD, in, EPOLLIN | EPOLLET, 4));
	look("empty");
	put("a");
	look("a change");
	look("no other");
	look_for("no other, waiting", 8, 30);
	put("b");
	look("another change");
	get(1);
	look("a read is none");
	tell("ask again", control(EPOLL_CTL_MOD, in, EPOLLIN | EPOLLET, 5));
	look("asked again");
	get(1);
	tell("once", control(EPOLL_CTL_MOD, in, EPOLLIN | EPOLLONESHOT, 6));
	put("c");
	look("once");
	put("d");
	look("not twice");
	tell("once more", control(EPOLL_CTL_MOD, in, EPOLLIN | EPOLLONESHOT, 7));
	look("once more");
	get(2);
	int event = eventfd(0, 0);
	uint64_t one = 1;
	tell("a counter", control(EPOLL_CTL_ADD, event, EPOLLIN | EPOLLET, 8));
	look("at 0");
	need(write(event, &one, 8) == 8, "write");
	look("at 1");
	look("still at 1");
	need(write(event, &one, 8) == 8, "write");
	look("at 2");
	close(event);
	look("closed");
}

static void ends(void)
{
	tell("the reader", control(EPOLL_CTL_MOD, in, EPOLLIN, 9));
	int copy = dup(out);
	close(out);
	look("a copy is open");
	close(copy);
	look("the writer is gone");
	copy = dup(in);
	close(in);
	look("the file is open");
	close(copy);
	look("the file is gone");
	open_pipe();
	tell("another pipe", control(EPOLL_CTL_ADD, out, EPOLLOUT, 10));
	close(in);
	look("the reader is gone");
	close(out);
	look("none");
}

static void *puts_late(void *unused)
{
	(void)unused;
	usleep(20000);
	put("x");
	return NULL;
}

static void *adds_late(void *unused)
{
	(void)unused;
	usleep(20000);
	need(control(EPOLL_CTL_ADD, in, EPOLLIN, 12) == 0, "add");
	return NULL;
}

static void *closes_late(void *unused)
{
	(void)unused;
	usleep(20000);
	close(out);
	return NULL;
}

/* Does something late in another thread. */
static pthread_t later(void *(*work)(void *))
{
	pthread_t thread;
	need(pthread_create(&thread, NULL, work, NULL) == 0, "pthread_create");
	return thread;
}

static void handler(int number)
{
	(void)number;
}

static void waits(void)
{
	open_pipe();
	tell("a pipe", control(EPOLL_CTL_ADD, in, EPOLLIN | EPOLLET, 11));
	pthread_t thread = later(puts_late);
	look_for("until there is a byte", 8, -1);
	pthread_join(thread, NULL);
	struct pollfd polled = { set, POLLIN, 0 };
	say("poll of the set: %d", poll(&polled, 1, 0));
	tell("remove", control(EPOLL_CTL_DEL, in, 0, 0));
	thread = later(adds_late);
	say("poll until the set is ready: %d", poll(&polled, 1, -1));
	pthread_join(thread, NULL);
	tell("remove", control(EPOLL_CTL_DEL, in, 0, 0));
	thread = later(adds_late);
	look_for("until a file is added", 8, -1);
	pthread_join(thread, NULL);
	get(1);
	look_for("until the time is over", 8, 20);
	/* A set, even one at which a thread waits, keeps no file open. */
	tell("the writer", control(EPOLL_CTL_ADD, out, EPOLLERR, 13));
	thread = later(closes_late);
	look_for("until the writer is gone", 8, 5000);
	pthread_join(thread, NULL);
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigaction(SIGALRM, &action, NULL);
	sigset_t none, alarm_only;
	sigemptyset(&none);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	close(in);
	ualarm(20000, 0);
	look_for("until a signal", 8, -1);
	sigprocmask(SIG_BLOCK, &alarm_only, NULL);
	ualarm(20000, 0);
	look_for("a blocked signal", 8, 50);
	struct epoll_event event;
	tell("with another mask", epoll_pwait(set, &event, 1, -1, &none));
}

static void many(void)
{
	enum { MANY = 200 };
	int writers[MANY];
	for (int i = 0; i < MANY; i++) {
		open_pipe();
		writers[i] = out;
		need(control(EPOLL_CTL_ADD, in, EPOLLIN, i) == 0, "add");
	}
	look("many");
	out = writers[150];
	pthread_t thread = later(puts_late);
	look_for("one of many", 8, -1);
	pthread_join(thread, NULL);
	for (int i = 0; i < 20; i++)
		need(write(writers[i], "x", 1) == 1, "write");
	int seen[MANY] = { 0 }, different = 0;
	for (int turn = 0; turn < 6; turn++) {
		struct epoll_event events[4];
		int count = epoll_wait(set, events, 4, 0);
		for (int i = 0; i < count; i++)
			different += !seen[events[i].data.u64]++;
	}
	say("all get their turn: %d", different);
}

int main(void)
{
	set = epoll_create1(EPOLL_CLOEXEC);
	need(set >= 0, "epoll_create1");
	open_pipe();
	errors();
	levels();
	changes();
	ends();
	waits();
	many();
	return 0;
}
