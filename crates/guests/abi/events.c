/* Counters as files: eventfd. */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

static int event;

static int add(uint64_t value)
{
	return write(event, &value, sizeof value);
}

static void take(const char *what)
{
	uint64_t value = 0;
	ssize_t got = read(event, &value, sizeof value);
	if (got == sizeof value)
		say("%s: %llx", what, (unsigned long long)value);
	else
		tell(what, got);
}

static void look(const char *what, int wait)
{
	struct pollfd one = { event, POLLIN | POLLOUT, 0 };
	int ready = poll(&one, 1, wait);
	say("%s: %d%s%s", what, ready, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "");
}

static void *adds(void *unused)
{
	(void)unused;
	for (int i = 0; i < 1000; i++)
		need(add(1) == 8, "write");
	return NULL;
}

static void *adds_late(void *unused)
{
	(void)unused;
	usleep(20000);
	add(5);
	return NULL;
}

static void *takes_late(void *unused)
{
	(void)unused;
	usleep(20000);
	take("makes room");
	return NULL;
}

static int adds_as_child(void)
{
	usleep(20000);
	return add(7) != 8;
}

/* What several threads add, others take. */
static void count_all(void)
{
	pthread_t threads[4];
	uint64_t sum = 0, value;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, adds, NULL);
	while (sum < 4000) {
		need(read(event, &value, sizeof value) == 8, "read");
		sum += value;
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	say("all: %d", (int)sum);
	look("nothing is left", 0);
}

int main(void)
{
	pthread_t thread;
	struct stat stat;
	char small[4];
	event = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC);
	need(event >= 0, "eventfd");
	need(fstat(event, &stat) == 0, "fstat");
	say("no type: %d, closes: %d, %d", !(stat.st_mode & S_IFMT), fcntl(event, F_GETFD), fcntl(event, F_GETFL) & O_NONBLOCK ? 1 : 0);
	look("at first", 0);
	take("all at once");
	take("nothing");
	look("now", 0);
	say("adds: %d %d", add(2), add(0));
	take("both");
	say("the most: %d", add(UINT64_MAX - 1));
	tell("no room", add(1) == 8 ? 0 : -1);
	look("full", 0);
	tell("too much", add(UINT64_MAX) == 8 ? 0 : -1);
	tell("too short to write", write(event, small, 4));
	tell("too short to read", read(event, small, 4));
	take("the most");
	close(event);

	event = eventfd(2, EFD_SEMAPHORE);
	take("one");
	take("another");
	pthread_create(&thread, NULL, adds_late, NULL);
	take("one that comes");
	pthread_join(thread, NULL);
	take("the next");
	close(event);

	event = eventfd(0, 0);
	pid_t child = spawn(adds_as_child);
	struct pollfd one = { event, POLLIN, 0 };
	say("waits: %d", poll(&one, 1, 5000));
	take("a child's");
	reap("child", child);
	say("in vain: %d", poll(&one, 1, 10));
	add(UINT64_MAX - 1);
	pthread_create(&thread, NULL, takes_late, NULL);
	int added = add(9);
	pthread_join(thread, NULL);
	say("waits for room: %d", added);
	take("then");
	count_all();
	tell("odd flags", eventfd(0, 0x100));
	return 0;
}
