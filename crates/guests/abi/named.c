/* What processes and threads are called, and what happens to those whose parent ends. */
#include "abi.h"
#include <pthread.h>
#include <sys/prctl.h>

static int pipes[2];

static void file(const char *what, const char *path)
{
	char text[256];
	int file = open(path, O_RDONLY);
	need(file >= 0, path);
	ssize_t length = read(file, text, sizeof text - 1);
	close(file);
	for (ssize_t i = 0; i < length; i++)
		if (text[i] == 0 || text[i] == '\n')
			text[i] = '|';
	text[length < 0 ? 0 : length] = 0;
	say("%s: %s", what, text);
}

static void *thread(void *unused)
{
	char name[17] = "";
	prctl(PR_GET_NAME, name);
	say("thread begins as: %s", name);
	prctl(PR_SET_NAME, "another");
	prctl(PR_GET_NAME, name);
	say("thread: %s", name);
	file("process still", "/proc/self/comm");
	return unused;
}

static int named(void)
{
	file("child", "/proc/self/comm");
	prctl(PR_SET_NAME, "child");
	file("child", "/proc/self/comm");
	return 0;
}

static int orphan(void)
{
	int signal = -1;
	tell("set", prctl(PR_SET_PDEATHSIG, SIGKILL));
	prctl(PR_GET_PDEATHSIG, &signal);
	say("is set: %d", signal == SIGKILL);
	tell("nonsense", prctl(PR_SET_PDEATHSIG, 99));
	char byte;
	need(write(pipes[1], "x", 1) == 1, "write");
	while (read(-1, &byte, 1) < 0)
		pause();
	return 1;
}

static int parent(void)
{
	int signal = -1;
	char byte;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	spawn(orphan);
	need(read(pipes[0], &byte, 1) == 1, "read");
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_GET_PDEATHSIG, &signal);
		_exit(signal);
	}
	reap("not inherited", child);
	return 0;
}

int main(int count, char **arguments)
{
	if (count == 3) {
		file("arguments", "/proc/self/cmdline");
		return 7;
	}
	char name[17] = "";
	prctl(PR_SET_NAME, "a name that is longer than fits");
	prctl(PR_GET_NAME, name);
	say("name: %s", name);
	file("process", "/proc/self/comm");
	pthread_t other;
	need(pthread_create(&other, NULL, thread, NULL) == 0, "pthread_create");
	pthread_join(other, NULL);
	reap("child", spawn(named));
	tell("bad address", prctl(PR_SET_NAME, nowhere));
	need(pipe(pipes) == 0, "pipe");
	reap("parent", spawn(parent));
	close(pipes[1]);
	char byte;
	say("the orphan ends: %zd", read(pipes[0], &byte, 1));
	pid_t child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "one", "two words", "", (char *)NULL);
		_exit(99);
	}
	reap(count ? "other program" : arguments[0], child);
	return 0;
}
