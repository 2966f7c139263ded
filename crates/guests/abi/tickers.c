/* Timers as files: timerfd. */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>

enum { MS = 1000000 };

static int timer;

static struct timespec span(long nanoseconds)
{
	return (struct timespec){ nanoseconds / 1000000000, nanoseconds % 1000000000 };
}

static int set(long first, long interval)
{
	struct itimerspec new = { span(interval), span(first) };
	return timerfd_settime(timer, 0, &new, NULL);
}

static void take(const char *what)
{
	uint64_t times = 0;
	ssize_t got = read(timer, &times, sizeof times);
	if (got == sizeof times)
		say("%s: %d", what, (int)times);
	else
		tell(what, got);
}

/* How long a timer still runs: not at all, up to a limit in milliseconds, or longer. */
static void rest(const char *what, long limit)
{
	struct itimerspec now;
	need(timerfd_gettime(timer, &now) == 0, "timerfd_gettime");
	long left = now.it_value.tv_sec * 1000000000 + now.it_value.tv_nsec;
	say("%s: %s, each %d ms", what, left == 0 ? "none" : left <= limit * MS ? "some" : "more",
		(int)(now.it_interval.tv_sec * 1000 + now.it_interval.tv_nsec / MS));
}

static void look(const char *what, int wait)
{
	struct pollfd one = { timer, POLLIN | POLLOUT, 0 };
	int ready = poll(&one, 1, wait);
	say("%s: %d%s%s", what, ready, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "");
}

static void errors(void)
{
	struct itimerspec spec = { { 0, 0 }, { 0, 1000000000 } };
	int count;
	char small[4];
	tell("no clock", timerfd_create(99, 0));
	tell("a clock of CPUs", timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
	tell("flags", timerfd_create(CLOCK_MONOTONIC, 1));
	tell("too many nanoseconds", timerfd_settime(timer, 0, &spec, NULL));
	spec.it_value = (struct timespec){ -1, 0 };
	tell("negative", timerfd_settime(timer, 0, &spec, NULL));
	spec.it_value = (struct timespec){ 0, 0 };
	tell("flags to set", timerfd_settime(timer, 8, &spec, NULL));
	tell("no file", timerfd_settime(999, 0, &spec, NULL));
	tell("no timer", timerfd_settime(1, 0, &spec, NULL));
	tell("nor here", timerfd_gettime(1, &spec));
	tell("from nowhere", timerfd_settime(timer, 0, (void *)nowhere, NULL));
	tell("to nowhere", timerfd_gettime(timer, (void *)nowhere));
	tell("write", write(timer, &spec, 8));
	tell("too short", read(timer, small, sizeof small));
	tell("at a place", pread(timer, &spec, 8, 0));
	tell("FIONREAD", ioctl(timer, FIONREAD, &count));
}

static void *sets_late(void *unused)
{
	(void)unused;
	usleep(20000);
	set(10 * MS, 0);
	return NULL;
}

static void handler(int number)
{
	(void)number;
}

int main(void)
{
	struct stat stat;
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	need(timer >= 0 && fstat(timer, &stat) == 0, "timerfd_create");
	say("no type: %d, closes: %d, reads and writes: %d", !(stat.st_mode & S_IFMT), fcntl(timer, F_GETFD),
		(fcntl(timer, F_GETFL) & O_ACCMODE) == O_RDWR);
	char link[100], path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", timer);
	ssize_t length = readlink(path, link, sizeof link - 1);
	link[length < 0 ? 0 : length] = 0;
	say("link: %s", link);
	errors();
	rest("not set", 0);
	take("nothing");
	look("nothing", 0);
	tell("once", set(200 * MS, 0));
	rest("once", 200);
	take("not yet");
	look("it expires", 5000);
	look("still", 0);
	rest("over", 0);
	take("once");
	take("not twice");
	look("read", 0);

	tell("again and again", set(10 * MS, 50 * MS));
	rest("before the first", 10);
	usleep(170000);
	rest("between two", 50);
	uint64_t times = 0;
	need(read(timer, &times, 8) == 8, "read");
	say("several: %d", times >= 4 && times < 1000);
	take("none is left");
	look("the next", 5000);
	struct itimerspec stop = { { 0, 0 }, { 0, 0 } }, old;
	tell("stop", timerfd_settime(timer, 0, &stop, &old));
	say("it was set: %d", old.it_interval.tv_nsec == 50 * MS && old.it_value.tv_nsec <= 50 * MS);
	look("stopped", 50);
	take("what expired is gone");
	tell("only an interval", set(0, 5 * MS));
	rest("is not set", 0);
	look("nothing comes", 30);

	set(1 * MS, 1);
	usleep(20000);
	times = 0;
	need(read(timer, &times, 8) == 8, "read");
	say("very many: %d", times > 1000000);
	set(1, 0);
	usleep(1000);
	take("at once");
	close(timer);

	struct timespec now;
	timer = timerfd_create(CLOCK_REALTIME, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	struct itimerspec at = { { 0, 0 }, { now.tv_sec, now.tv_nsec } };
	at.it_value.tv_sec++;
	tell("at a time", timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL));
	rest("soon", 1000);
	take("a second later");
	at.it_value.tv_sec -= 100;
	tell("in the past", timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL));
	take("at once");
	at.it_value = (struct timespec){ 1, 0 };
	tell("long ago", timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL));
	take("at once");

	set(20 * MS, 0);
	take("waits");
	pthread_t thread;
	pthread_create(&thread, NULL, sets_late, NULL);
	take("until one sets it");
	pthread_join(thread, NULL);
	int epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	tell("add", epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event));
	set(10 * MS, 10 * MS);
	for (int i = 0; i < 3; i++) {
		int count = epoll_wait(epoll, &event, 1, 5000);
		need(read(timer, &times, 8) == 8, "read");
		say("each time: %d", count);
	}
	set(0, 0);
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGALRM, &action, NULL);
	ualarm(20000, 0);
	take("until a signal");
	close(timer);
	say("closed: %d", epoll_wait(epoll, &event, 1, 0));
	return 0;
}
