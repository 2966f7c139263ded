/* Runs a test case in will-it-scale's shape inside a guest: the test case is linked with this file. What it is started with,
 * and the lines that it prints, are those of src/inside.rs: name, "processes" or "threads", number of tasks, "cores", "cpus"
 * or "anywhere", a count that test cases have not, and when the kernel watches:
 * samples a second, 0 for none, and nanoseconds before it does and while it does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BEAT = 20000, FAILED = 4 };

void testcase(unsigned long long *iterations, unsigned long task);
void testcase_prepare(unsigned long tasks) __attribute__((weak));

/* Each task's words are on lines of their own. Only the task itself writes them. */
struct slot {
	_Alignas(256) volatile unsigned long long count;
	/* Set before the task waits at the gate, and when the test case has returned. */
	volatile int is_ready, has_returned;
};

static const char *name;
static int threads;
static unsigned long tasks;
static struct slot *slots;
/* It opens when a byte can be read, which nobody does: so each task sees it. */
static int gate[2];

static void fail(const char *what)
{
	printf("failed %s: %s\n", name, what);
	fflush(stdout);
	_exit(FAILED);
}

static void need(int good, const char *what)
{
	char text[256];
	if (good)
		return;
	snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
	fail(text);
}

static void *run(void *slot)
{
	struct slot *own = slot;
	struct pollfd opens = { gate[0], POLLIN, 0 };
	own->is_ready = 1;
	while (poll(&opens, 1, -1) <= 0)
		;
	testcase((unsigned long long *)&own->count, own - slots);
	own->has_returned = 1;
	return NULL;
}

/* A process, which ends when its parent ends, or a thread. Returns the process's number, or 0. */
static pid_t begin(void *(*function)(void *), void *argument)
{
	pthread_t thread;
	pid_t parent = getpid(), child;
	if (threads) {
		errno = pthread_create(&thread, NULL, function, argument);
		need(errno == 0, "pthread_create");
		return 0;
	}
	child = fork();
	need(child >= 0, "fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			function(argument);
		_exit(0);
	}
	return child;
}

/* What will-it-scale's harness offers: a task that runs concurrently with its caller. */
void new_task(void *(*function)(void *), void *argument)
{
	begin(function, argument);
}

/* Starts the tasks, each on a CPU of its own as long as there are some. */
static void begin_all(int pinned, pid_t *pids)
{
	cpu_set_t all, one;
	int cpu = -1;
	need(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
	for (unsigned long task = 0; task < tasks; task++) {
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &all));
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (pinned)
			need(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
		pids[task] = begin(run, &slots[task]);
	}
	need(sched_setaffinity(0, sizeof all, &all) == 0, "sched_setaffinity");
}

/* Fails if a task has ended, which none should. */
static void check(const pid_t *pids)
{
	char text[128];
	int status;
	for (unsigned long task = 0; task < tasks; task++) {
		if (slots[task].has_returned) {
			snprintf(text, sizeof text, "task %lu: testcase returned; it must run until it is killed", task);
			fail(text);
		}
		if (threads || waitpid(pids[task], &status, WNOHANG) == 0)
			continue;
		snprintf(text, sizeof text, "task %lu ended on its own: %s %d", task,
			WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		fail(text);
	}
}

static void tell(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("counts %lld%09ld", (long long)now.tv_sec, now.tv_nsec);
	for (unsigned long task = 0; task < tasks; task++)
		printf(" %llu", slots[task].count);
	printf("\n");
	fflush(stdout);
}

/* Has the kernel take this many samples a second. */
static void profile(const char *frequency)
{
	int file = open("/dev/profile", O_WRONLY);
	need(write(file, frequency, strlen(frequency)) > 0, "/dev/profile");
	close(file);
}

static void sleep_for(const char *nanoseconds)
{
	unsigned long long all = strtoull(nanoseconds, NULL, 10);
	struct timespec rest = { all / 1000000000, all % 1000000000 };
	while (nanosleep(&rest, &rest) != 0)
		;
}

/* The kernel watches the tasks for a while. */
static void watch(const pid_t *pids, char **words)
{
	char bytes[4096];
	ssize_t length;
	sleep_for(words[1]);
	profile(words[0]);
	tell();
	sleep_for(words[2]);
	check(pids);
	tell();
	profile("0");
	int file = open("/proc/profile", O_RDONLY);
	while ((length = read(file, bytes, sizeof bytes)) > 0)
		need(write(1, bytes, length) == length, "standard output");
	need(length == 0, "/proc/profile");
	_exit(0);
}

int main(int count, char **words)
{
	if (count != 9)
		return FAILED;
	name = words[1];
	threads = strcmp(words[2], "threads") == 0;
	tasks = strtoul(words[3], NULL, 10);
	pid_t *pids = calloc(tasks, sizeof *pids);
	slots = mmap(NULL, tasks * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(pids != NULL && slots != MAP_FAILED && pipe(gate) == 0, "start");
	if (testcase_prepare)
		testcase_prepare(tasks);
	fflush(NULL);
	begin_all(strcmp(words[4], "anywhere") != 0, pids);
	for (unsigned long task = 0; task < tasks; task++)
		while (!slots[task].is_ready) {
			check(pids);
			usleep(1000);
		}
	need(write(gate[1], "", 1) == 1, "gate");
	if (strcmp(words[6], "0") != 0)
		watch(pids, words + 6);
	for (;;) {
		check(pids);
		tell();
		usleep(BEAT);
	}
}
