/* Programs that run are not written, and files that are written do not run; what changes the times of a file. */
#include "abi.h"

static long seconds(const char *name)
{
	struct stat data;
	return stat(name, &data) ? -1 : (long)data.st_mtime;
}

static void old(const char *name)
{
	struct timespec times[2] = { { 1000, 0 }, { 1000, 0 } };
	utimensat(AT_FDCWD, name, times, 0);
}

static void changed(const char *what, const char *name)
{
	say("%s: %d", what, seconds(name) != 1000);
	old(name);
}

static void times(void)
{
	int file = open("file", O_RDWR | O_CREAT, 0600);
	write(file, "abc", 3);
	old("file");
	write(file, "", 0);
	changed("nothing written", "file");
	write(file, "x", 1);
	changed("written", "file");
	close(open("file", O_WRONLY));
	changed("opened", "file");
	close(open("file", O_WRONLY | O_TRUNC));
	changed("cut off", "file");
	close(open("file", O_WRONLY | O_TRUNC));
	changed("cut off, though empty", "file");
	ftruncate(file, 10);
	changed("made larger", "file");
	chmod("file", 0640);
	changed("another mode", "file");
	mkdir("folder", 0700);
	old("folder");
	close(open("folder/new", O_CREAT | O_WRONLY, 0600));
	changed("a new name", "folder");
	rename("folder/new", "folder/other");
	changed("another name", "folder");
	link("folder/other", "folder/two");
	changed("a second name", "folder");
	unlink("folder/two");
	changed("one name less", "folder");
	mkdir("folder/in", 0700);
	changed("a folder", "folder");
	rmdir("folder/in");
	changed("no folder", "folder");
	close(open("folder/other", O_CREAT | O_WRONLY, 0600));
	changed("a name that is there", "folder");
}

static int copy(void)
{
	static char bytes[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY), to = open("program", O_CREAT | O_RDWR, 0700);
	for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;)
		if (write(to, bytes, got) != got)
			return -1;
	close(from);
	return to;
}

/* Starts the copy, which says that it runs, and ends when its input does. */
static pid_t start(int *input)
{
	int in[2], out[2];
	need(pipe(in) == 0 && pipe(out) == 0, "pipe");
	pid_t child = fork();
	if (child == 0) {
		dup2(in[0], 0);
		dup2(out[1], 3);
		close(in[1]);
		execl("./program", "program", "wait", NULL);
		tell("exec", -1);
		_exit(9);
	}
	close(in[0]);
	close(out[1]);
	char byte;
	read(out[0], &byte, 1);
	close(out[0]);
	*input = in[1];
	return child;
}

int main(int count, char **words)
{
	(void)words;
	char byte;
	if (count > 1) {
		write(3, "x", 1);
		read(0, &byte, 1);
		return 5;
	}
	alarm(30);
	umask(022);
	enter_folder();
	times();
	int input, written = copy();
	fcntl(written, F_SETFD, FD_CLOEXEC);
	reap("open to be written", start(&input));
	close(input);
	close(written);
	pid_t child = start(&input);
	tell("written while it runs", open("program", O_WRONLY));
	tell("or both", open("program", O_RDWR));
	tell("cut off", open("program", O_RDONLY | O_TRUNC));
	tell("by its name", truncate("program", 0));
	tell("read", open("program", O_RDONLY) < 0 ? -1 : 0);
	tell("another mode", chmod("program", 0755));
	tell("another name", rename("program", "other"));
	tell("no name", unlink("other"));
	close(input);
	reap("it ends as always", child);
	written = copy();
	tell("another one", written < 0 ? -1 : 0);
	close(written);
	child = start(&input);
	close(input);
	reap("it runs", child);
	tell("written after it has ended", open("program", O_WRONLY) < 0 ? -1 : 0);
	return 0;
}
