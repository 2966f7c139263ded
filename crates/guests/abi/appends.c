/* Files that several processes change at the same time: no line is lost or torn, and no name is missing. */
#include "abi.h"

enum { WRITERS = 3, ROUNDS = 1500, LINE = 64, LONG = 100000 };

static int *stop;

/* Appends lines that are all of one letter, to a file that it opens itself. */
static int append(int letter, int rounds, size_t length)
{
	int file = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	char *line = malloc(length);
	memset(line, letter, length);
	line[length - 1] = '\n';
	for (int i = 0; i < rounds; i++)
		if (write(file, line, length) != (ssize_t)length)
			return 1;
	return 0;
}

static void appended(const char *what, int rounds, size_t length)
{
	unlink("log");
	for (int i = 0; i < WRITERS; i++)
		if (fork() == 0)
			_exit(append('a' + i, rounds, length));
	int status, failed = 0;
	while (wait(&status) > 0)
		failed += status != 0;
	struct stat data;
	stat("log", &data);
	int file = open("log", O_RDONLY), torn = 0;
	char *line = malloc(length);
	while (read(file, line, length) == (ssize_t)length)
		torn += !all(line, length - 1, line[0]) || line[length - 1] != '\n';
	say("%s: %d failed, %ld lost, %d torn", what, failed, (long)(WRITERS * rounds * length - data.st_size), torn);
	close(file);
}

static void at_a_place(void)
{
	int file = open("file", O_RDWR | O_CREAT | O_APPEND, 0600);
	write(file, "12345", 5);
	say("at a place: %zd", pwrite(file, "AB", 2, 0));
	char text[16] = { 0 };
	pread(file, text, 15, 0);
	say("it goes to the end: <%s>, at %ld", text, (long)lseek(file, 0, SEEK_CUR));
}

/* Looks up names until told to stop; one of them always exists. */
static int miss(const char *name)
{
	long missing = 0;
	while (!*(volatile int *)stop) {
		int file = open(name, O_RDONLY);
		missing += file < 0;
		close(file);
	}
	return missing != 0;
}

static void replaced(void)
{
	close(open("name", O_CREAT | O_WRONLY, 0600));
	*stop = 0;
	pid_t child = fork();
	if (child == 0)
		_exit(miss("name"));
	for (int i = 0; i < 2000; i++) {
		close(open("new", O_CREAT | O_WRONLY, 0600));
		need(rename("new", "name") == 0, "rename");
	}
	*stop = 1;
	reap("a name that is replaced is never missing", child);
}

/* Names come into a folder that another process removes and makes again. */
static int enter(void)
{
	long lost = 0;
	while (!*(volatile int *)stop) {
		int file = open("folder/name", O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (file < 0)
			continue;
		struct stat data;
		/* It is in the folder until it is taken out here. */
		lost += unlink("folder/name") != 0 || fstat(file, &data) || data.st_nlink != 0;
		close(file);
	}
	return lost != 0;
}

static void removed(void)
{
	*stop = 0;
	mkdir("folder", 0700);
	pid_t child = spawn(enter);
	int gone = 0;
	for (int i = 0; i < 3000; i++) {
		gone += rmdir("folder") == 0;
		mkdir("folder", 0700);
	}
	*stop = 1;
	reap("no name is in a folder that has gone", child);
	say("removed: %d", gone > 0);
}

/* Two processes that move names to and fro, in and out of two folders. */
static int move(const char *from, const char *to)
{
	for (int i = 0; i < 1000; i++) {
		rename(from, to);
		rename(to, from);
	}
	return 0;
}

static void moved(void)
{
	mkdir("left", 0700);
	mkdir("right", 0700);
	mkdir("left/a", 0700);
	mkdir("left/stays", 0700);
	mkdir("right/b", 0700);
	pid_t children[2];
	for (int i = 0; i < 2; i++)
		if ((children[i] = fork()) == 0)
			_exit(i ? move("right/b", "left/b") : move("left/a", "right/a"));
	for (int i = 0; i < 2000; i++)
		rmdir("left");
	for (int i = 0; i < 2; i++)
		reap("mover", children[i]);
	say("both are there: %d", access("left/a", F_OK) == 0 && access("right/b", F_OK) == 0);
}

int main(void)
{
	alarm(50);
	enter_folder();
	stop = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	at_a_place();
	appended("lines", ROUNDS, LINE);
	appended("long lines", 10, LONG);
	replaced();
	removed();
	moved();
	return 0;
}
