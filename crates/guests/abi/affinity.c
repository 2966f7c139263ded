/* Where threads run: masks that are kept, in threads and children that inherit them, and barriers in all threads. */
#include "abi.h"
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

enum { LOOKS = 20000 };

/* Commands of membarrier; musl has no names for them. */
enum { QUERY = 0, GLOBAL = 1, PRIVATE = 8, REGISTER = 16 };

static cpu_set_t only(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

static unsigned here(void)
{
	unsigned cpu = 99;
	need(syscall(SYS_getcpu, &cpu, NULL, NULL) == 0, "getcpu");
	return cpu;
}

static int pin(pid_t thread, int cpu)
{
	cpu_set_t set = only(cpu);
	return sched_setaffinity(thread, sizeof set, &set);
}

/* How often the caller was elsewhere, while it computes, yields and sleeps. */
static int strays(unsigned cpu)
{
	int strays = 0;
	for (int i = 0; i < LOOKS; i++) {
		strays += here() != cpu;
		if (i % 64 == 0)
			sched_yield();
		if (i % 2048 == 0)
			usleep(500);
	}
	return strays;
}

static void *inherits(void *cpu)
{
	cpu_set_t set;
	need(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
	say("a thread inherits: %d, strays: %d", CPU_COUNT(&set), strays(*(unsigned *)cpu));
	return NULL;
}

static int child_on_0(void)
{
	return strays(0) != 0;
}

static int child_on_1(void)
{
	return pin(0, 1) != 0 || strays(1) != 0;
}

static volatile pid_t spinner;
static volatile int over, allowed = -1;
static volatile unsigned long wrong, turns;

static void *spin(void *unused)
{
	(void)unused;
	spinner = syscall(SYS_gettid);
	while (!over) {
		/* What was allowed before and after is what was allowed then. */
		int only = allowed, cpu = here();
		if (only >= 0 && cpu != only && allowed == only)
			wrong++;
		turns++;
	}
	return NULL;
}

/* Others may say where a thread runs, also while it is in user mode. */
static void move_another(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, spin, NULL);
	while (!spinner)
		usleep(1000);
	for (int round = 0; round < 6; round++) {
		allowed = -1;
		need(pin(spinner, round % 2) == 0, "sched_setaffinity");
		usleep(20000);
		allowed = round % 2;
		unsigned long before = turns;
		usleep(20000);
		need(turns > before, "progress");
	}
	over = 1;
	pthread_join(thread, NULL);
	say("another one strays: %d", wrong != 0);
}

static void barriers(void)
{
	long known = syscall(SYS_membarrier, QUERY, 0, 0);
	say("barriers: %d %d", (known & GLOBAL) != 0, (known & PRIVATE) != 0);
	tell("a barrier for all", syscall(SYS_membarrier, GLOBAL, 0, 0));
	tell("not registered", syscall(SYS_membarrier, PRIVATE, 0, 0));
	tell("registers", syscall(SYS_membarrier, REGISTER, 0, 0));
	tell("a barrier", syscall(SYS_membarrier, PRIVATE, 0, 0));
	tell("with flags", syscall(SYS_membarrier, PRIVATE, 2, 0));
	tell("an odd one", syscall(SYS_membarrier, 1 << 20, 0, 0));
}

int main(void)
{
	cpu_set_t all, set;
	need(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
	say("at first: %d CPUs", CPU_COUNT(&all));
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		tell("pinned", pin(0, cpu));
		say("at once: %d, strays: %d", here() == cpu, strays(cpu));
		pthread_t thread;
		pthread_create(&thread, NULL, inherits, &cpu);
		pthread_join(thread, NULL);
	}
	tell("back", pin(0, 0));
	pid_t children[] = { spawn(child_on_0), spawn(child_on_0), spawn(child_on_1), spawn(child_on_1) };
	for (int i = 0; i < 4; i++)
		reap("a child", children[i]);
	CPU_ZERO(&set);
	tell("nowhere", sched_setaffinity(0, sizeof set, &set));
	set = only(1000);
	tell("a CPU that does not exist", sched_setaffinity(0, sizeof set, &set));
	tell("nobody", pin(0x3fffffff, 0));
	tell("nobody's", sched_getaffinity(0x3fffffff, sizeof set, &set));
	tell("no room", sched_getaffinity(0, 4, &set));
	tell("a bad address", syscall(SYS_sched_setaffinity, 0, sizeof set, nowhere));
	sched_getaffinity(0, sizeof set, &set);
	say("still: %d CPU", CPU_COUNT(&set));
	set = all;
	CPU_SET(1000, &set);
	tell("all, and more", sched_setaffinity(0, sizeof set, &set));
	sched_getaffinity(0, sizeof set, &set);
	say("all: %d", CPU_EQUAL(&all, &set));
	move_another();
	barriers();
	return 0;
}
