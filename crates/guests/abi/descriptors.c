/* What a process has open, as files: /proc/self/fd. */
#include "abi.h"

static void link_of(const char *what, int file)
{
	char name[64], text[128] = { 0 };
	snprintf(name, sizeof name, "/proc/self/fd/%d", file);
	ssize_t length = readlink(name, text, sizeof text - 1);
	if (length < 0)
		tell(what, -1);
	else
		say("%s: %s", what, strncmp(text, "pipe:", 5) == 0 ? "a pipe" : text);
}

static void about(const char *what, const char *name, int (*look)(const char *, struct stat *))
{
	struct stat data;
	if (look(name, &data))
		tell(what, -1);
	else
		say("%s: %s", what, S_ISFIFO(data.st_mode) ? "pipe" : S_ISLNK(data.st_mode) ? "link" : "other");
}

int main(void)
{
	char name[64], text[8] = { 0 };
	int ends[2];
	need(pipe(ends) == 0, "pipe");
	int null = open("/dev/null", O_RDONLY);
	link_of("pipe", ends[0]);
	link_of("device", null);
	link_of("nothing", 77);
	snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
	about("itself", name, lstat);
	about("what it leads to", name, stat);
	int again = open(name, O_WRONLY);
	need(again >= 0, "again");
	say("written: %zd", write(again, "abc", 3));
	close(again);
	close(ends[1]);
	snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
	again = open(name, O_RDONLY);
	close(ends[0]);
	say("read: %zd <%s>", read(again, text, sizeof text), text);
	say("end: %zd", read(again, text, sizeof text));
	tell("closed", open(name, O_RDONLY) < 0 ? -1 : 0);
	return 0;
}
