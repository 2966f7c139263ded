/* Times on the processor, and what else is counted of processes; what the machine has. */
#include "abi.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>

static long milliseconds(clockid_t clock)
{
	struct timespec now;
	need(clock_gettime(clock, &now) == 0, "clock_gettime");
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static long used(int who, int system)
{
	struct rusage usage;
	need(getrusage(who, &usage) == 0, "getrusage");
	struct timeval time = system ? usage.ru_stime : usage.ru_utime;
	return time.tv_sec * 1000 + time.tv_usec / 1000;
}

/* Computes for so long, by the processor's time. */
static void compute(long time)
{
	long end = milliseconds(CLOCK_PROCESS_CPUTIME_ID) + time;
	while (milliseconds(CLOCK_PROCESS_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 100000; i++)
			;
}

static int work(void)
{
	compute(100);
	char *pages = memory(100);
	for (int i = 0; i < 100; i++)
		pages[i * PAGE] = 1;
	return 3;
}

int main(void)
{
	long before = milliseconds(CLOCK_PROCESS_CPUTIME_ID), real = milliseconds(CLOCK_MONOTONIC);
	usleep(200000);
	say("sleep takes no time: %d", milliseconds(CLOCK_PROCESS_CPUTIME_ID) - before < 100);
	say("but it lasts: %d", milliseconds(CLOCK_MONOTONIC) - real >= 200);
	compute(100);
	say("work takes time: %d", used(RUSAGE_SELF, 0) + used(RUSAGE_SELF, 1) >= 90);
	say("a thread is all: %d", milliseconds(CLOCK_THREAD_CPUTIME_ID) <= milliseconds(CLOCK_PROCESS_CPUTIME_ID) + 5);
	say("children: %d", used(RUSAGE_CHILDREN, 0) + used(RUSAGE_CHILDREN, 1) == 0);
	pid_t child = spawn(work);
	struct rusage usage;
	int status;
	need(wait4(child, &status, 0, &usage) == child, "wait4");
	ended("child", status);
	long time = usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 + usage.ru_stime.tv_sec * 1000
	            + usage.ru_stime.tv_usec / 1000;
	say("its time: %d, its faults: %d", time >= 90 && time < 10000, usage.ru_minflt >= 100);
	say("of the children: %d", used(RUSAGE_CHILDREN, 0) + used(RUSAGE_CHILDREN, 1) >= 90);
	struct tms ticks;
	need(times(&ticks) != -1, "times");
	say("ticks: %d %d", ticks.tms_utime + ticks.tms_stime >= 8, ticks.tms_cutime + ticks.tms_cstime >= 8);
	tell("nonsense", getrusage(99, &usage));
	tell("bad address", syscall(SYS_getrusage, RUSAGE_SELF, nowhere));
	struct timespec unit;
	tell("resolution", clock_getres(CLOCK_PROCESS_CPUTIME_ID, &unit));

	struct sysinfo info;
	need(sysinfo(&info) == 0, "sysinfo");
	say("memory: %d, processes: %d", info.totalram > 0 && info.freeram <= info.totalram, info.procs > 0);
	unsigned cpu = 9999, node = 9999;
	need(syscall(SYS_getcpu, &cpu, &node, NULL) == 0, "getcpu");
	say("processor: %d, node: %d", cpu < 9999, node < 9999);
	uint32_t header[2] = { 0, 0 }, data[6] = { 0 };
	tell("rights by no version", syscall(SYS_capget, header, data));
	say("the version: %x", header[0]);
	tell("rights", syscall(SYS_capget, header, data));
	say("some: %d", data[0] != 0 && data[1] != 0);
	return 0;
}
