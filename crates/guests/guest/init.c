/* Process 1 of the guest: runs the programs that /command names, one after the other, and ends the machine with the
 * exit status of the last one.
 *
 * /command has strings that end in NUL: the mode (`batch` or `terminal`), the file for standard input (empty: the
 * console), and for each program the environment, the file, and the arguments from the 0th on. An environment and
 * arguments begin with their number.
 *
 * Nothing that a program has started runs on when the next one begins. What is printed of each but the last ends in
 * the program's status between two record separators.
 *
 * It is the same on Linux and on scalevm's kernel. What only one of them needs may fail on the other. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { SIZE = 1 << 20, WORDS = 1 << 14, FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

static char text[SIZE + 2];
static char *words[WORDS + 1];
/* The word to be read next. */
static char **word = words;

static void complain(const char *what)
{
	dprintf(2, "init: %s: %s\n", what, strerror(errno));
}

/* The strings of /command; their number, or -1. */
static int read_command(void)
{
	int file = open("/command", O_RDONLY);
	if (file < 0)
		return -1;
	size_t length = 0;
	ssize_t got;
	while ((got = read(file, text + length, SIZE - length)) > 0)
		length += got;
	close(file);
	int count = 0;
	for (size_t at = 0; at < length && count < WORDS; at += strlen(text + at) + 1)
		words[count++] = text + at;
	return count;
}

/* The next list of words. It moves over its number, so that there is room for the NULL at its end. */
static char **take_list(void)
{
	static char *none;
	int count = *word ? atoi(*word++) : 0;
	if (count < 0 || count > words + WORDS - word)
		return &none;
	memmove(word - 1, word, count * sizeof *word);
	char **list = word - 1;
	list[count] = NULL;
	word += count;
	return list;
}

/* What Linux has from its drivers and file systems. A kernel that has /proc by itself has all of them. */
static void prepare(void)
{
	if (access("/proc/self", F_OK) == 0)
		return;
	mount("proc", "/proc", "proc", 0, "");
	mount("sysfs", "/sys", "sysfs", 0, "");
	mount("devtmpfs", "/dev", "devtmpfs", 0, "");
	mount("tmpfs", "/tmp", "tmpfs", 0, "");
}

/* Bytes pass the console as they are. */
static void make_raw(void)
{
	struct termios line;
	if (tcgetattr(1, &line) < 0)
		return;
	line.c_oflag &= ~OPOST;
	line.c_lflag &= ~ECHO;
	tcsetattr(1, TCSANOW, &line);
}

/* Becomes the program. */
static void start(char *input, char **environment, char *file, char **arguments)
{
	if (*input) {
		int from = open(input, O_RDONLY);
		if (from < 0 || dup2(from, 0) < 0)
			complain(input);
		close(from);
	} else {
		setsid();
		ioctl(0, TIOCSCTTY, 1);
	}
	environ = environment;
	execvpe(file, arguments, environment);
	int why = errno;
	complain(file);
	_exit(why == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

/* The status with which the program has ended, as a shell says it. */
static int wait_for(pid_t program)
{
	int status;
	pid_t ended;
	while ((ended = wait4(-1, &status, 0, NULL)) != program)
		if (ended < 0 && errno != EINTR)
			return FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Ends the machine. Linux has no word for process 1's status: it goes over the second line, and the machine resets. */
static void end(int status)
{
	int report = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);
	if (report >= 0) {
		struct termios line;
		if (tcgetattr(report, &line) == 0) {
			line.c_oflag &= ~OPOST;
			tcsetattr(report, TCSANOW, &line);
		}
		dprintf(report, "exit %d\n", status);
		tcdrain(report);
		tcdrain(1);
		reboot(RB_AUTOBOOT);
	}
	_exit(status);
}

/* Runs the next program of /command; returns its status. */
static int run(char *mode, char *input)
{
	char **environment = take_list(), *file = *word ? *word++ : NULL, **arguments = take_list();
	if (!file || !*arguments) {
		dprintf(2, "init: /command names no program\n");
		return FAILED;
	}
	if (strcmp(mode, "batch") == 0)
		make_raw();
	pid_t child = fork();
	/* A kernel that cannot fork yet can still run the program, as process 1. */
	if (child == 0 || (child < 0 && errno == ENOSYS))
		start(input, environment, file, arguments);
	if (child < 0) {
		complain("fork");
		return FAILED;
	}
	return wait_for(child);
}

/* Ends all other processes. */
static void clear(void)
{
	kill(-1, SIGKILL);
	while (wait4(-1, NULL, 0, NULL) > 0 || errno == EINTR)
		;
}

int main(void)
{
	prepare();
	if (read_command() < 2) {
		complain("/command");
		end(FAILED);
	}
	char *mode = *word++, *input = *word++;
	int status = run(mode, input);
	while (*word) {
		clear();
		dprintf(1, "\036%d\036", status);
		status = run(mode, input);
	}
	end(status);
}
