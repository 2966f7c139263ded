/* What can be done with every open file. */
#include "abi.h"
#include <dirent.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>

enum { UNSHARE = 2, LATER = 4 };

static void number(const char *what, long result)
{
	if (result == -1)
		tell(what, -1);
	else
		say("%s: %ld", what, result);
}

static void flags(const char *what, int file)
{
	int on = 1, off = 0, bytes = -1;
	say("%s", what);
	tell("do not wait", ioctl(file, FIONBIO, &on));
	say("set: %d", (fcntl(file, F_GETFL) & O_NONBLOCK) != 0);
	tell("wait", ioctl(file, FIONBIO, &off));
	say("set: %d", (fcntl(file, F_GETFL) & O_NONBLOCK) != 0);
	tell("no flag", ioctl(file, FIONBIO, nowhere));
	tell("close later", ioctl(file, FIOCLEX));
	say("set: %d", fcntl(file, F_GETFD));
	tell("do not", ioctl(file, FIONCLEX));
	say("set: %d", fcntl(file, F_GETFD));
	tell("no signals", ioctl(file, FIOASYNC, &off));
	long told = ioctl(file, FIONREAD, &bytes);
	tell("bytes", told);
	say("there are %d", bytes);
	tell("nothing that is known", ioctl(file, 0x12345678, &bytes));
	tell("whole file", fsync(file));
	tell("data", fdatasync(file));
	tell("file system", syncfs(file));
	tell("a part", sync_file_range(file, 0, 10, SYNC_FILE_RANGE_WRITE));
	tell("lock", fcntl(file, F_GETLK, &(struct flock){ .l_type = F_RDLCK, .l_len = 1 }));
}

static void copies(void)
{
	int file = open("file", O_RDWR | O_CLOEXEC);
	tell("onto itself", dup2(file, file) == file ? 0 : -1);
	say("still closes: %d", fcntl(file, F_GETFD));
	tell("the other way", syscall(SYS_dup3, file, file, 0));
	tell("of nothing", syscall(SYS_dup3, 99, 99, 0));
	tell("flags", syscall(SYS_dup3, file, 60, O_NONBLOCK));
	say("closes: %ld", syscall(SYS_dup3, file, 60, O_CLOEXEC) == 60 ? (long)fcntl(60, F_GETFD) : -1);
	tell("below nothing", dup2(file, -1));
	tell("at least -1", fcntl(file, F_DUPFD, -1));
	tell("no such command", fcntl(file, 999, 0));
	close(60);
	close(file);
}

static int count(int from, int to)
{
	int open = 0;
	for (int i = from; i <= to; i++)
		open += fcntl(i, F_GETFD) >= 0;
	return open;
}

static void ranges(void)
{
	int file = open("file", O_RDWR);
	for (int i = 50; i < 60; i++)
		dup2(file, i);
	tell("later", syscall(SYS_close_range, 52, 53, LATER));
	say("%d %d %d", fcntl(51, F_GETFD), fcntl(52, F_GETFD), fcntl(53, F_GETFD));
	tell("some", syscall(SYS_close_range, 54, 57, 0));
	say("left: %d", count(50, 60));
	tell("none", syscall(SYS_close_range, 70, 80, 0));
	tell("backwards", syscall(SYS_close_range, 80, 70, 0));
	tell("no such flag", syscall(SYS_close_range, 70, 80, 64));
	tell("of one's own", syscall(SYS_close_range, 59, 59, UNSHARE));
	tell("all others", syscall(SYS_close_range, 50, ~0U, 0));
	say("left: %d", count(50, 60));
	close(file);
}

/* Closes what a listing of the open files shows, while it goes on. */
static void listed(void)
{
	int file = open("file", O_RDWR), seen = 0, rounds = 0;
	for (int i = 100; i < 400; i++)
		dup2(file, i);
	DIR *folder = opendir("/proc/self/fd");
	need(folder != NULL, "/proc/self/fd");
	for (int again = 1; again && rounds < 10; rounds++) {
		again = 0;
		rewinddir(folder);
		for (struct dirent *one; (one = readdir(folder));) {
			int number = atoi(one->d_name);
			if (number < 100)
				continue;
			close(number);
			seen++;
			again = 1;
		}
	}
	closedir(folder);
	say("seen: %d, left: %d, ended: %d", seen, count(100, 400), rounds < 10);
	folder = opendir("/proc/self/fd");
	for (struct dirent *one; (one = readdir(folder));)
		;
	dup2(file, 200);
	rewinddir(folder);
	seen = 0;
	for (struct dirent *one; (one = readdir(folder));)
		seen += strcmp(one->d_name, "200") == 0;
	say("a new one is there: %d", seen);
	closedir(folder);
	char text[4096];
	int maps = open("/proc/self/maps", O_RDONLY);
	while (read(maps, text, 100) > 0)
		;
	char *at = mmap((void *)0x70000000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	need(at != MAP_FAILED, "mmap");
	lseek(maps, 0, SEEK_SET);
	int found = 0;
	for (ssize_t got; (got = read(maps, text, sizeof text - 1)) > 0;) {
		text[got] = 0;
		found |= strstr(text, "70000000-") != NULL;
	}
	say("and a new mapping: %d", found);
	close(maps);
	close(200);
	close(file);
}

static void vectors(void)
{
	int file = open("file", O_RDWR | O_TRUNC);
	char one[4] = "abc", other[4] = "def";
	struct iovec parts[] = { { one, 3 }, { other, 3 } };
	number("written at a place", pwritev(file, parts, 2, 2));
	number("and where it is", syscall(SYS_pwritev2, file, parts, 1, -1L, -1L, 0));
	number("flags", syscall(SYS_pwritev2, file, parts, 1, 0L, 0L, 0x4000));
	number("read at a place", preadv(file, parts, 2, 1));
	say("<%.3s%.3s>, at %ld", one, other, (long)lseek(file, 0, SEEK_CUR));
	number("before the start", preadv(file, parts, 2, -2));
	number("no part", readv(file, parts, 0));
	close(file);
}

static void nameless(void)
{
	struct stat data;
	int file = open(".", O_TMPFILE | O_RDWR, 0600);
	say("made: %d", file >= 0);
	number("written", write(file, "abc", 3));
	fstat(file, &data);
	say("%ld names, %ld bytes", (long)data.st_nlink, (long)data.st_size);
	tell("gets a name", linkat(file, "", AT_FDCWD, "named", AT_EMPTY_PATH));
	tell("is there", access("named", F_OK));
	tell("only to read", open(".", O_TMPFILE | O_RDONLY, 0600));
	tell("in a file", open("file", O_TMPFILE | O_RDWR, 0600));
	file = open(".", O_TMPFILE | O_EXCL | O_RDWR, 0600);
	tell("that never gets one", linkat(file, "", AT_FDCWD, "other", AT_EMPTY_PATH));
}

int main(void)
{
	alarm(30);
	umask(022);
	enter_folder();
	int ends[2], file = open("file", O_RDWR | O_CREAT, 0600);
	need(pipe(ends) == 0, "pipe");
	write(file, "12345", 5);
	lseek(file, 2, SEEK_SET);
	write(ends[1], "1234567", 7);
	flags("file", file);
	flags("pipe, to read", ends[0]);
	flags("pipe, to write", ends[1]);
	flags("counter", syscall(SYS_eventfd2, 3, 0));
	flags("/dev/null", open("/dev/null", O_RDWR));
	tell("no file", ioctl(99, FIONBIO, nowhere));
	tell("owner", fchown(ends[0], -1, -1));
	tell("mode", fchmod(ends[0], 0640));
	close(file);
	copies();
	ranges();
	listed();
	vectors();
	nameless();
	char value[8];
	number("no attribute", getxattr("file", "odd.name", value, 8));
	number("set none", setxattr("file", "odd.name", value, 1, 0));
	number("remove none", removexattr("file", "odd.name"));
	number("list", listxattr("file", value, 8));
	number("of no file", listxattr("none", value, 8));
	struct rlimit limit = { 20, 4096 };
	setrlimit(RLIMIT_NOFILE, &limit);
	struct pollfd polled[21] = { 0 };
	for (int i = 0; i < 21; i++)
		polled[i].fd = -1;
	number("poll as many as may be open", poll(polled, 20, 0));
	number("and one more", poll(polled, 21, 0));
	sync();
	return 0;
}
