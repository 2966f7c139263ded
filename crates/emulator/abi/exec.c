/* execve, and vfork. */
#include "abi.h"

extern char **environ;

/* What the new program finds. */
static int report(int count, char **arguments)
{
	for (int i = 0; i < count; i++)
		say("argument %d: <%s>", i, arguments[i]);
	for (char **one = environ; *one; one++)
		say("environment: <%s>", *one);
	int kept = atoi(arguments[2]), closed = atoi(arguments[3]);
	say("kept descriptor: %d", fcntl(kept, F_GETFD));
	tell("closed descriptor", fcntl(closed, F_GETFD));
	struct sigaction how;
	sigaction(SIGUSR1, NULL, &how);
	say("ignored stays ignored: %d", how.sa_handler == SIG_IGN);
	sigaction(SIGUSR2, NULL, &how);
	say("caught is default: %d", how.sa_handler == SIG_DFL);
	sigset_t mask;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	say("blocked stays blocked: %d", sigismember(&mask, SIGHUP));
	return 17;
}

static void nothing(int number)
{
	(void)number;
}

static void errors(void)
{
	char *arguments[] = { "x", NULL };
	enter_folder();
	tell("no file", execve("missing", arguments, environ));
	tell("a folder", execve("/tmp", arguments, environ));
	int file = open("text", O_CREAT | O_WRONLY, 0644);
	need(file >= 0 && write(file, "hello\n", 6) == 6, "text");
	close(file);
	tell("not executable", execve("text", arguments, environ));
	chmod("text", 0755);
	tell("not a program", execve("text", arguments, environ));
	tell("below a file", execve("text/x", arguments, environ));
	tell("nowhere", execve(nowhere, arguments, environ));
}

static volatile int told;

static void borrow(void)
{
	pid_t child = vfork();
	if (child == 0) {
		told = 1;
		_exit(6);
	}
	say("after vfork, the child has stored: %d", told);
	reap("it", child);
}

int main(int count, char **arguments)
{
	if (strcmp(arguments[0], "again") == 0)
		return report(count, arguments);
	errors();
	borrow();
	char kept[12], closed[12];
	snprintf(kept, sizeof kept, "%d", dup(1));
	snprintf(closed, sizeof closed, "%d", fcntl(1, F_DUPFD_CLOEXEC, 0));
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, nothing);
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	char *next[] = { "again", "", kept, closed, "\xff two words", NULL }, *environment[] = { "A=1", "B=", NULL };
	pid_t child = fork();
	if (child == 0) {
		execve("/proc/self/exe", next, environment);
		tell("execve", -1);
		_exit(1);
	}
	reap("new program", child);
	return 0;
}
