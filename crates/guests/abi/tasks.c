/* What /proc tells of the threads of a process. */
#include "abi.h"
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static sem_t begun, over;
static pid_t other;

static char text[4096];

/* A file of a thread, as long as one is there. */
static const char *told(pid_t thread, const char *name)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, name);
	int file = open(path, O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
	text[length < 0 ? 0 : length] = 0;
	close(file);
	return text;
}

static int number(const char *name)
{
	const char *found = strstr(text, name);
	return found ? atoi(found + strlen(name)) : -1;
}

static int threads(void)
{
	DIR *all = opendir("/proc/self/task");
	need(all != NULL, "/proc/self/task");
	int count = 0;
	for (struct dirent *one; (one = readdir(all));)
		count += one->d_name[0] != '.';
	closedir(all);
	return count;
}

static void *thread(void *nothing)
{
	other = syscall(SYS_gettid);
	prctl(PR_SET_NAME, "another");
	sem_post(&begun);
	while (sem_wait(&over))
		;
	return nothing;
}

static void describe(const char *which, pid_t thread)
{
	told(thread, "comm");
	say("%s: %s", which, strtok(text, "\n"));
	told(thread, "status");
	say("its number: %d, its process: %d, parent: %d", number("\nPid:") == thread, number("Tgid:") == getpid(),
	    number("PPid:") == getppid());
	say("in stat: %d", atoi(told(thread, "stat")) == thread);
}

/* A name that ends where memory does, one without an end, and one that needs escapes. */
static void names(void)
{
	char *at = memory(2), name[17] = "";
	munmap(at + PAGE, PAGE);
	tell("a short name", prctl(PR_SET_NAME, strcpy(at + PAGE - 4, "abc")));
	prctl(PR_GET_NAME, name);
	say("it is <%s>", name);
	tell("15 letters, and no more", prctl(PR_SET_NAME, memcpy(at + PAGE - 15, "0123456789abcde", 15)));
	prctl(PR_GET_NAME, name);
	say("it is <%s>", name);
	tell("14 letters, and no more", prctl(PR_SET_NAME, memcpy(at + PAGE - 14, "0123456789abcd", 14)));
	prctl(PR_SET_NAME, "a\\b\nc d)");
	told(getpid(), "status");
	say("told: %s", strtok(text, "\n"));
	say("comm: %zu letters", strlen(told(getpid(), "comm")));
}

int main(void)
{
	names();
	prctl(PR_SET_NAME, "the first");
	say("threads: %d", threads());
	describe("first", getpid());
	pthread_t id;
	need(pthread_create(&id, NULL, thread, NULL) == 0, "pthread_create");
	sem_wait(&begun);
	say("threads: %d", threads());
	describe("first", getpid());
	describe("other", other);
	for (int i = 0; i < 2000 && !strstr(told(other, "stat"), ") S "); i++)
		usleep(1000);
	say("it sleeps: %d", strstr(text, "(another) S ") != NULL);
	say("the first runs: %d", strstr(told(getpid(), "stat"), "(the first) R ") != NULL);
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", getpid(), other);
	tell("by the process's number", open(path, O_RDONLY) < 0 ? -1 : 0);
	tell("another's", open("/proc/self/task/1/stat", O_RDONLY));
	sem_post(&over);
	pthread_join(id, NULL);
	for (int i = 0; i < 2000 && threads() > 1; i++)
		usleep(1000);
	tell("it has gone", open(path, O_RDONLY));
	say("threads: %d", threads());
	return 0;
}
