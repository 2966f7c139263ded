/* Clocks and sleeping. */
#include "abi.h"
#include <sys/time.h>
#include <time.h>

static double at(clockid_t clock)
{
	struct timespec time;
	need(clock_gettime(clock, &time) == 0, "clock_gettime");
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(void)
{
	double start = at(CLOCK_MONOTONIC), wall = at(CLOCK_REALTIME), last = start;
	int backwards = 0;
	for (int i = 0; i < 10000; i++) {
		double now = at(CLOCK_MONOTONIC);
		backwards += now < last;
		last = now;
	}
	say("backwards: %d", backwards);
	struct timespec span = { 0, 50000000 }, left = { 1, 1 };
	tell("sleep", nanosleep(&span, &left));
	double slept = at(CLOCK_MONOTONIC) - start, passed = at(CLOCK_REALTIME) - wall;
	say("long enough: %d, not for ever: %d", slept >= 0.05, slept < 5);
	say("both clocks agree: %d", passed > 0.9 * slept && passed < 1.1 * slept);
	struct timeval now;
	gettimeofday(&now, NULL);
	double second = now.tv_sec - at(CLOCK_REALTIME);
	say("so do the calls: %d", second > -2 && second < 2 && time(NULL) - now.tv_sec < 2);
	say("this century: %d", now.tv_sec > 946684800);
	span.tv_nsec = 2000000000;
	tell("an odd time", nanosleep(&span, NULL));
	tell("an unknown clock", clock_gettime(99, &span));
	span = (struct timespec){ 0, 0 };
	tell("no time", nanosleep(&span, NULL));
	tell("resolution", clock_getres(CLOCK_MONOTONIC, &span));
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec = 0;
	say("a time that is over: %d", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
	return 0;
}
