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

/* Runs this program again with this number of arguments of this length. */
static void long_list(const char *what, int count, int letters)
{
	static char text[1 << 18];
	char **arguments = calloc(count + 3, sizeof *arguments), *environment[] = { NULL };
	memset(text, 'a', letters);
	text[letters] = 0;
	arguments[0] = "count";
	for (int i = 1; i <= count; i++)
		arguments[i] = text;
	pid_t child = fork();
	if (child == 0) {
		execve("/proc/self/exe", arguments, environment);
		tell("execve", -1);
		_exit(1);
	}
	reap(what, child);
	free(arguments);
}

/* A program whose dynamic linker is missing. */
static void no_linker(void)
{
	static const unsigned char header[] = {
		0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0, [24] = 0x78, 0, 0x40,
		[32] = 64, [52] = 64, 0, 56, 0, 1, 0, [64] = 3, 0, 0, 0, 4, 0, 0, 0, [72] = 120, [96] = 16, [104] = 16, [112] = 1,
		[120] = '/', 'n', 'o', '/', 'l', 'i', 'n', 'k', 'e', 'r', 0, 0, 0, 0, 0, 0,
	};
	char *arguments[] = { "x", NULL };
	int file = open("dynamic", O_CREAT | O_WRONLY, 0755);
	need(file >= 0 && write(file, header, sizeof header) == sizeof header, "dynamic");
	close(file);
	tell("no dynamic linker", execve("dynamic", arguments, environ));
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
	if (strcmp(arguments[0], "count") == 0) {
		say("%d arguments, the last of %zu letters", count, strlen(arguments[count - 1]));
		return 0;
	}
	if (arguments[0][0] == 0) {
		say("%d argument, without a letter", count);
		return 0;
	}
	errors();
	no_linker();
	borrow();
	long_list("one of 128 KiB", 1, (1 << 17) - 1);
	long_list("one too long", 1, 1 << 17);
	long_list("many", 5000, 27);
	long_list("almost 2 MiB", 15, 130000);
	long_list("more than 2 MiB", 17, 130000);
	pid_t nameless = fork();
	if (nameless == 0) {
		char **volatile none = NULL;
		execve("/proc/self/exe", none, none);
		_exit(1);
	}
	reap("without arguments", nameless);
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
