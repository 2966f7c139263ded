/* What the programs share. They print the same text on every kernel that keeps the ABI: no addresses, numbers of
 * processes or times. Each line is written at once, so that processes which share the output do not mix. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

enum { PAGE = 4096 };

/* An address at which there is never anything; compilers do not know it. */
UNUSED static char *volatile nowhere = (char *)8;

UNUSED static void say(const char *format, ...)
{
	char line[1024];
	va_list values;
	va_start(values, format);
	int length = vsnprintf(line, sizeof line - 1, format, values);
	va_end(values);
	line[length++] = '\n';
	if (write(1, line, length) != length)
		_exit(99);
}

/* Says what a call returned: that it succeeded, or its error. */
UNUSED static void tell(const char *what, long result)
{
	say("%s: %s", what, result == -1 ? strerror(errno) : "ok");
}

/* Ends the program, unless a call that the rest depends on has succeeded. */
UNUSED static void need(int good, const char *what)
{
	if (good)
		return;
	say("%s failed: %s", what, strerror(errno));
	_exit(98);
}

UNUSED static char *map(size_t pages, int protection, int flags)
{
	char *at = mmap(NULL, pages * PAGE, protection, flags | MAP_ANONYMOUS, -1, 0);
	need(at != MAP_FAILED, "mmap");
	return at;
}

UNUSED static char *memory(size_t pages)
{
	return map(pages, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

/* Whether all bytes are `value`. */
UNUSED static int all(const char *at, size_t length, char value)
{
	for (size_t i = 0; i < length; i++)
		if (at[i] != value)
			return 0;
	return 1;
}

/* The end of a child, in words. */
UNUSED static void ended(const char *what, int status)
{
	if (WIFEXITED(status))
		say("%s: exit %d", what, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		say("%s: signal %d", what, WTERMSIG(status));
	else
		say("%s: status %#x", what, status);
}

/* Waits for a child and says how it ended. */
UNUSED static void reap(const char *what, pid_t child)
{
	int status = 0;
	pid_t got = waitpid(child, &status, 0);
	need(got == child, "waitpid");
	ended(what, status);
}

/* Forks, and runs `body` in the child, which then exits with its result. */
UNUSED static pid_t spawn(int (*body)(void))
{
	pid_t child = fork();
	need(child >= 0, "fork");
	if (child == 0)
		_exit(body());
	return child;
}

/* Goes to an empty folder of the program's own. */
UNUSED static void enter_folder(void)
{
	char name[] = "abi-XXXXXX";
	need(mkdtemp(name) != NULL && chdir(name) == 0, name);
}
