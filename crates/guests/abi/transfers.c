/* Reading and writing: a call moves what it can, and what it did not move is still there. */
#include "abi.h"
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static char large[1 << 17];

/* A page, and nothing behind it. */
static char *edge(void)
{
	char *at = memory(2);
	munmap(at + PAGE, PAGE);
	return at + PAGE;
}

static void count(const char *what, long result)
{
	if (result == -1)
		tell(what, -1);
	else
		say("%s: %ld", what, result);
}

static long place(int file)
{
	return lseek(file, 0, SEEK_CUR);
}

static int left(int file)
{
	int bytes = -1;
	ioctl(file, FIONREAD, &bytes);
	return bytes;
}

/* A call that waits returns what is there, however much is asked for. */
static void waiting(void)
{
	int ends[2];
	char one[10], other[10];
	struct iovec parts[] = { { one, 0 }, { one, 10 }, { other, 10 } };
	need(pipe(ends) == 0, "pipe");
	write(ends[1], "0123456789abc", 13);
	count("two parts of a pipe", readv(ends[0], parts, 3));
	say("in order: %.10s %.3s", one, other);
	write(ends[1], "0123456789", 10);
	count("the first part is enough", readv(ends[0], parts, 3));
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], large, PAGE) > 0)
		;
	count("more than a pipe has", read(ends[0], large, sizeof large));
	uint64_t counts[2];
	int event = syscall(SYS_eventfd2, 5, 0);
	struct iovec numbers[] = { { counts, 8 }, { counts + 1, 8 } };
	count("a counter", readv(event, numbers, 2));
	write(ends[1], "rest", 4);
	close(ends[1]);
	count("up to the end", read(ends[0], large, sizeof large));
	count("the end", readv(ends[0], parts, 3));
	close(ends[0]);
	close(event);
}

static void halves_of_files(void)
{
	int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *end = edge();
	write(file, "abcdef", 6);
	lseek(file, 0, SEEK_SET);
	count("read where one fits", read(file, end - 1, 2));
	say("got %c, at %ld", end[-1], place(file));
	count("read where none fits", read(file, end, 2));
	count("write where one is", write(file, end - 1, 2));
	say("at %ld", place(file));
	count("write where none is", write(file, end, 2));
	struct iovec parts[] = { { end - 2, 2 }, { nowhere, 2 } };
	lseek(file, 0, SEEK_SET);
	count("a part that is nowhere", readv(file, parts, 2));
	say("at %ld", place(file));
	count("and as the first", readv(file, parts + 1, 1));
	count("to be written", writev(file, parts, 2));
	count("at a place", preadv(file, parts, 1, 4));
	say("read %.2s, at %ld", end - 2, place(file));
	count("written at a place", pwritev(file, parts, 1, 8));
	say("at %ld, %ld bytes", place(file), (long)lseek(file, 0, SEEK_END));
	count("nothing, nowhere", read(file, nowhere, 0));
	count("nothing, from nowhere", write(file, nowhere, 0));
	close(file);
}

static void halves_of_pipes(void)
{
	int ends[2];
	char *end = edge(), text[16] = { 0 };
	need(pipe2(ends, O_NONBLOCK) == 0, "pipe");
	write(ends[1], "abcdef", 6);
	count("pipe, nowhere", read(ends[0], nowhere, 3));
	count("pipe, over the edge", read(ends[0], end - 2, 6));
	say("left %d", left(ends[0]));
	count("then", read(ends[0], text, 16));
	say("<%s>", text);
	count("pipe, from nowhere", write(ends[1], nowhere, 3));
	count("pipe, from over the edge", write(ends[1], end - 2, 6));
	say("left %d", left(ends[0]));
	static char *fresh;
	fresh = memory(16);
	memset(large, 'x', sizeof large);
	write(ends[1], large, 16 * PAGE);
	count("to memory that was never touched", read(ends[0], fresh, 16 * PAGE));
	say("all: %d", all(fresh, 16 * PAGE, 'x'));
	int lowest = dup(0);
	close(lowest);
	tell("a pipe for nobody", pipe((int *)nowhere));
	say("no numbers are lost: %d", dup(0) == lowest);
	close(lowest);
	count("no part too many", readv(ends[0], (struct iovec *)nowhere, 1025));
	struct iovec huge = { text, (size_t)-1 };
	count("a part too large", readv(ends[0], &huge, 1));
	close(ends[0]);
	close(ends[1]);
}

static void sent(void)
{
	int from = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600), to = open("to", O_RDWR | O_CREAT, 0600);
	int ends[2];
	need(pipe(ends) == 0, "pipe");
	write(from, "0123456789", 10);
	lseek(from, 2, SEEK_SET);
	count("sent", sendfile(to, from, NULL, 3));
	say("at %ld and %ld", place(from), place(to));
	off_t offset = 7;
	count("from a place", sendfile(to, from, &offset, 100));
	say("then %ld, at %ld", (long)offset, place(from));
	offset = -1;
	count("before the start", sendfile(to, from, &offset, 1));
	offset = 1;
	count("less than nothing", sendfile(to, from, &offset, -1));
	int appends = open("to", O_WRONLY | O_APPEND);
	count("to one that appends", sendfile(appends, from, NULL, 1));
	count("from a pipe, at a place", sendfile(to, ends[0], &offset, 1));
	count("place nowhere", sendfile(to, from, (off_t *)nowhere, 1));
	loff_t first = 1, second = 20;
	count("copied", syscall(SYS_copy_file_range, from, &first, to, &second, 4, 0));
	say("then %ld and %ld", (long)first, (long)second);
	count("flags", syscall(SYS_copy_file_range, from, &first, to, &second, 4, 1));
	first = 0, second = 2;
	count("over itself", syscall(SYS_copy_file_range, from, &first, from, &second, 4, 0));
	count("to a pipe", syscall(SYS_copy_file_range, from, &first, ends[1], NULL, 4, 0));
	count("a folder", syscall(SYS_copy_file_range, open(".", O_RDONLY), NULL, to, NULL, 4, 0));
	count("to the end", syscall(SYS_copy_file_range, from, &first, appends, NULL, 4, 0));
	char text[32] = { 0 };
	count("all", pread(to, text, 31, 0));
	for (int i = 0; i < 24; i++)
		text[i] = text[i] ? text[i] : '.';
	say("<%s>", text);
}

/* In memory: other file systems have smaller files. */
static void places(void)
{
	int file = memfd_create("file", 0);
	char text[4] = { 0 };
	count("read before the start", pread(file, text, 1, -1));
	count("write before the start", pwrite(file, text, 1, -1));
	count("read behind all", pread(file, text, 4, INT64_MAX - 2));
	count("write behind all", pwrite(file, text, 2, INT64_MAX - 1));
	tell("go there", lseek(file, INT64_MAX - 1, SEEK_SET) == INT64_MAX - 1 ? 0 : -1);
	count("read there", read(file, text, 4));
	count("write there", write(file, text, 4));
	tell("and beyond", lseek(file, 2, SEEK_CUR));
	tell("data of nothing", lseek(file, 0, SEEK_DATA));
	enum { FAR = 1 << 20 };
	pwrite(file, "x", 1, FAR);
	pwrite(file, "x", 1, 3 * FAR);
	say("data from %ld, hole from %ld", (long)lseek(file, 5, SEEK_DATA), (long)lseek(file, FAR, SEEK_HOLE));
	say("data from %ld, the last", (long)lseek(file, 2 * FAR, SEEK_DATA));
	say("hole at %ld, at the end", (long)lseek(file, 3 * FAR, SEEK_HOLE));
	tell("data behind it", lseek(file, 3 * FAR + 1, SEEK_DATA));
	tell("a hole there", lseek(file, 4 * FAR, SEEK_HOLE));
	tell("before the start", lseek(file, -1, SEEK_HOLE));
	say("a hole is zero: %d", pread(file, large, FAR / 16, FAR / 2) == FAR / 16 && all(large, FAR / 16, 0));
	struct stat data;
	fstat(file, &data);
	say("few blocks: %d", data.st_blocks > 0 && data.st_blocks < 200);
	void *map = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, INT64_MAX - PAGE + 1);
	tell("mapped behind all", map == MAP_FAILED ? -1 : 0);
	tell("mapped before", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, -PAGE) == MAP_FAILED ? -1 : 0);
	tell("mapped at a byte", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 1) == MAP_FAILED ? -1 : 0);
	close(file);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	alarm(30);
	enter_folder();
	waiting();
	halves_of_files();
	halves_of_pipes();
	sent();
	places();
	return 0;
}
