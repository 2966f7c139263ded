/* Files: their content, length and descriptors. */
#include "abi.h"

static void show(const char *what, int file)
{
	char text[64];
	ssize_t got = pread(file, text, sizeof text - 1, 0);
	need(got >= 0, "pread");
	for (ssize_t i = 0; i < got; i++)
		text[i] = text[i] ? text[i] : '.';
	text[got] = 0;
	struct stat data;
	fstat(file, &data);
	say("%s: <%s>, %ld bytes, at %ld", what, text, (long)data.st_size, (long)lseek(file, 0, SEEK_CUR));
}

static void content(void)
{
	int file = open("a", O_RDWR | O_CREAT | O_EXCL, 0640);
	need(file >= 0, "open");
	show("new", file);
	say("write: %zd", write(file, "hello world", 11));
	show("written", file);
	say("elsewhere: %zd", pwrite(file, "J", 1, 6));
	show("overwritten", file);
	char text[8] = { 0 };
	lseek(file, 4, SEEK_SET);
	say("read: %zd <%s>", read(file, text, 3), text);
	say("at the end: %zd", pread(file, text, 3, 11));
	say("from the end: %ld", (long)lseek(file, -2, SEEK_END));
	tell("before the start", lseek(file, -1, SEEK_SET));
	lseek(file, 15, SEEK_SET);
	say("beyond the end: %zd", write(file, "!", 1));
	show("with a hole", file);
	tell("cut", ftruncate(file, 5));
	show("shorter", file);
	tell("extend", ftruncate(file, 8));
	show("longer", file);
	close(file);
	tell("closed", close(file));
}

static void flags(void)
{
	tell("exists", open("a", O_RDWR | O_CREAT | O_EXCL, 0640));
	int more = open("a", O_WRONLY | O_APPEND);
	say("append: %zd", write(more, "end", 3));
	char byte;
	tell("read what is to be written", read(more, &byte, 1));
	close(more);
	int file = open("a", O_RDONLY);
	show("appended", file);
	tell("write what is to be read", write(file, "x", 1));
	int cut = open("a", O_RDWR | O_TRUNC);
	show("truncated", file);
	int same = dup(cut);
	say("write: %zd", write(cut, "abc", 3));
	say("copies share the place: %ld", (long)lseek(same, 0, SEEK_CUR));
	say("another open does not: %ld", (long)lseek(file, 0, SEEK_CUR));
	say("lowest number first: %d", dup(0) == same + 1);
	say("at a number: %d", dup2(cut, 20) == 20 && fcntl(20, F_GETFL) == fcntl(cut, F_GETFL));
	tell("no such number", dup2(77, 20));
	say("at least a number: %d", fcntl(cut, F_DUPFD, 30));
}

/* A file in memory lives on without a name and a descriptor; calls do not reach behind its end. */
static void mapped(void)
{
	int file = open("m", O_RDWR | O_CREAT, 0600), other = open("n", O_RDWR | O_CREAT, 0600);
	need(ftruncate(file, PAGE) == 0, "ftruncate");
	char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(at != MAP_FAILED, "mmap");
	at[0] = 'm';
	tell("unlink", unlink("m"));
	close(file);
	say("write from it: %zd", write(other, at, 1));
	show("written", other);
	tell("write from behind its end", write(other, at + PAGE, 10));
}

static int seek(void)
{
	return lseek(20, 2, SEEK_SET) != 2;
}

int main(void)
{
	umask(022);
	enter_folder();
	content();
	flags();
	mapped();
	reap("child moves the place", spawn(seek));
	say("which it shares: %ld", (long)lseek(20, 0, SEEK_CUR));
	tell("missing", open("b", O_RDWR));
	tell("below a file", open("a/b", O_RDWR));
	tell("a folder to write", open(".", O_RDWR));
	tell("not a folder", open("a", O_RDONLY | O_DIRECTORY));
	tell("no name", open("", O_RDONLY));
	tell("no address", open(nowhere, O_RDONLY));
	tell("no buffer", read(20, nowhere, 1));
	char name[300];
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	tell("a long name", open(name, O_RDONLY));
	return 0;
}
