/* Alarms. */
#include "abi.h"
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

static volatile int signals;

static void count(int signal)
{
	signals += signal == SIGALRM;
}

static void start(const char *what, long first, long interval)
{
	struct itimerval timer = { { interval / 1000000, interval % 1000000 }, { first / 1000000, first % 1000000 } }, old;
	int result = setitimer(ITIMER_REAL, &timer, &old);
	if (result < 0)
		tell(what, result);
	else
		say("%s: was %d, again %d", what, old.it_value.tv_sec || old.it_value.tv_usec,
		    old.it_interval.tv_sec || old.it_interval.tv_usec);
}

static void wait_for(int wanted)
{
	for (int i = 0; i < 1000 && signals < wanted; i++)
		usleep(10000);
	say("signals: %d", signals >= wanted);
}

static int die(void)
{
	signal(SIGALRM, SIG_DFL);
	alarm(1);
	while (pause() < 0)
		;
	return 0;
}

static int not_inherited(void)
{
	struct itimerval timer;
	getitimer(ITIMER_REAL, &timer);
	return timer.it_value.tv_sec != 0;
}

static volatile int works;

static void at_work(int number)
{
	works = number;
}

/* Timers of the time that the process uses: they ring while it works, not while it sleeps. */
static void of_use(const char *what, int which, int number)
{
	struct sigaction action = { .sa_handler = at_work };
	struct itimerval timer = { { 0, 20000 }, { 0, 200000 } }, rest;
	sigaction(number, &action, NULL);
	works = 0;
	tell(what, setitimer(which, &timer, NULL));
	usleep(300000);
	getitimer(which, &rest);
	say("asleep: %d, rest: %d, again: %ld", works, rest.it_value.tv_usec > 0, (long)rest.it_interval.tv_usec);
	for (int i = 0; i < 3; i++) {
		works = 0;
		while (works == 0)
			;
		say("at work: %d", works == number);
	}
	memset(&timer, 0, sizeof timer);
	setitimer(which, &timer, &rest);
	say("was: %d", rest.it_value.tv_usec > 0 && rest.it_value.tv_usec <= 20000);
	getitimer(which, &rest);
	say("is: %ld", (long)rest.it_value.tv_usec);
}

/* Works by turns in user mode and in the kernel while a timer samples it: no time becomes shorter. */
static void forward(void)
{
	struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };
	long long before[2] = { 0, 0 };
	int back = 0;
	signal(SIGVTALRM, SIG_IGN);
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
	for (int i = 0; i < 4000; i++) {
		for (volatile int j = 0; i / 500 % 2 && j < 40000; j++)
			;
		for (int j = 0; i / 500 % 2 == 0 && j < 200; j++)
			getppid();
		struct rusage usage;
		need(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
		long long now[2] = { usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec,
			             usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec };
		back += now[0] < before[0] || now[1] < before[1];
		memcpy(before, now, sizeof before);
	}
	say("backwards: %d", back);
}

int main(void)
{
	struct sigaction action = { .sa_handler = count };
	sigaction(SIGALRM, &action, NULL);
	say("first: %u", alarm(100));
	unsigned rest = alarm(200);
	say("second: %d", rest == 100 || rest == 99);
	struct itimerval timer;
	tell("get", getitimer(ITIMER_REAL, &timer));
	say("200: %d, once: %d", timer.it_value.tv_sec >= 198 && timer.it_value.tv_sec <= 200,
	    timer.it_interval.tv_sec == 0 && timer.it_interval.tv_usec == 0);
	reap("child has none", spawn(not_inherited));
	start("sooner", 20000, 0);
	wait_for(1);
	say("over: %u", alarm(0));
	start("again and again", 10000, 10000);
	wait_for(4);
	start("end", 0, 0);
	int seen = signals;
	usleep(50000);
	say("no more: %d", signals == seen);
	struct timespec time = { 5, 0 }, left;
	start("during sleep", 20000, 0);
	int slept = nanosleep(&time, &left);
	say("sleep: %s, rest %d", slept < 0 ? strerror(errno) : "ok", left.tv_sec == 4);
	start("bad time", 1, 0);
	timer.it_value.tv_usec = 1000000;
	tell("bad time", setitimer(ITIMER_REAL, &timer, NULL));
	timer.it_value.tv_usec = 0;
	timer.it_value.tv_sec = -1;
	tell("negative time", setitimer(ITIMER_REAL, &timer, NULL));
	tell("nonsense", setitimer(99, &timer, NULL));
	tell("bad address", setitimer(ITIMER_REAL, (void *)nowhere, NULL));
	for (int i = 100000; i > 0; i--)
		alarm(i);
	say("many: %d", alarm(0) == 1);
	reap("default", spawn(die));
	of_use("user mode", ITIMER_VIRTUAL, SIGVTALRM);
	of_use("all", ITIMER_PROF, SIGPROF);
	forward();
	return 0;
}
