/* Links in links, and links of /proc, which lead to what is open. */
#include "abi.h"
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

static void name(char *to, const char *letter, int number)
{
	sprintf(to, "%s%d", letter, number);
}

static void chain(void)
{
	char from[16], to[16];
	close(open("c0", O_CREAT | O_WRONLY, 0600));
	for (int i = 1; i <= 41; i++) {
		name(from, "c", i);
		name(to, "c", i - 1);
		symlink(to, from);
	}
	tell("40 links", access("c40", F_OK));
	tell("41 links", access("c41", F_OK));
	char path[512] = "";
	mkdir("d", 0700);
	symlink("d", "l");
	for (int i = 0; i < 40; i++)
		strcat(path, "l/../");
	tell("40 in a row", access(path, F_OK));
	strcat(path, "l");
	tell("and one more", access(path, F_OK));
	tell("which is not followed", readlink(path, from, sizeof from) < 0 ? -1 : 0);
}

/* Each link leads over the one before it twice. */
static void tree(void)
{
	char from[16], to[64];
	symlink("d", "b0");
	for (int i = 1; i <= 40; i++) {
		name(from, "b", i);
		sprintf(to, "b%d/../b%d", i - 1, i - 1);
		symlink(to, from);
	}
	time_t start = time(NULL);
	tell("a small tree", access("b4", F_OK));
	tell("a tree", access("b5", F_OK));
	tell("a large tree", access("b40", F_OK));
	tell("to create", open("b40/x", O_CREAT | O_WRONLY, 0600));
	tell("to rename", rename("b40/x", "b39/x"));
	say("at once: %d", time(NULL) - start < 5);
}

static const char *by(int file)
{
	static char path[4][64];
	static int turn;
	char *at = path[turn++ % 4];
	snprintf(at, 64, "/proc/self/fd/%d", file);
	return at;
}

static const char *below(int file, const char *rest)
{
	static char path[128];
	snprintf(path, sizeof path, "%s/%s", by(file), rest);
	return path;
}

static void opened(void)
{
	struct stat data;
	struct statfs about;
	int file = open("a", O_RDWR | O_CREAT, 0644);
	write(file, "abc", 3);
	tell("chmod", chmod(by(file), 0600));
	tell("truncate", truncate(by(file), 1));
	struct timespec times[2] = { { 5, 0 }, { 6, 0 } };
	tell("utimensat", utimensat(AT_FDCWD, by(file), times, 0));
	fstat(file, &data);
	say("mode %o, %ld bytes, time %ld", data.st_mode & 0777, (long)data.st_size, (long)data.st_mtime);
	tell("chown", chown(by(file), -1, -1));
	tell("access", access(by(file), R_OK));
	tell("statfs", statfs(by(file), &about));
	tell("link", linkat(AT_FDCWD, by(file), AT_FDCWD, "b", AT_SYMLINK_FOLLOW));
	tell("link by number", linkat(file, "", AT_FDCWD, "c", AT_EMPTY_PATH));
	fstat(file, &data);
	say("%ld names", (long)data.st_nlink);
	lstat(by(file), &data);
	say("it is a link: %d", S_ISLNK(data.st_mode));
	tell("create", open(by(file), O_CREAT | O_RDWR, 0600) < 0 ? -1 : 0);
	tell("create new", open(by(file), O_CREAT | O_EXCL | O_RDWR, 0600));
	tell("not by a link", open(by(file), O_NOFOLLOW | O_RDONLY));
	tell("below a file", access(below(file, "x"), F_OK));
	unlink("a"), unlink("b"), unlink("c");
	tell("without a name", open(by(file), O_RDONLY) < 0 ? -1 : 0);
	tell("that gets one", linkat(AT_FDCWD, by(file), AT_FDCWD, "b", AT_SYMLINK_FOLLOW));
	tell("no number", access(by(200), F_OK));
}

static void folders(void)
{
	struct stat data, other;
	int here = open(".", O_RDONLY | O_DIRECTORY), place = open("d", O_PATH);
	tell("create below", open(below(here, "x"), O_CREAT | O_WRONLY, 0600) < 0 ? -1 : 0);
	tell("which is there", access("x", F_OK));
	tell("above", access(below(here, ".."), F_OK));
	tell("mkdir below", mkdir(below(place, "inner"), 0700));
	tell("rename below", rename(below(place, "inner"), "d/other"));
	tell("rmdir below", rmdir(below(place, "other")));
	tell("with a slash", access(below(here, ""), F_OK));
	tell("cwd", access("/proc/self/cwd/x", F_OK));
	tell("root", access("/proc/self/root/proc", F_OK));
	tell("chdir", chdir(by(place)));
	tell("from there", access("../x", F_OK));
	tell("back", fchdir(here));
	tell("stat of nothing", fstatat(here, "", &data, 0));
	tell("stat of the folder", fstatat(AT_FDCWD, "", &data, AT_EMPTY_PATH));
	stat(".", &other);
	say("the same: %d", data.st_ino == other.st_ino);
	tell("stat of a place", fstatat(place, "", &data, AT_EMPTY_PATH));
	say("folder: %d", S_ISDIR(data.st_mode));
}

/* A place of the file system, and no more. */
static void places(void)
{
	char text[16] = { 0 };
	struct stat data;
	close(open("file", O_CREAT | O_WRONLY, 0600));
	symlink("file", "s");
	int place = open("file", O_PATH), link = open("s", O_PATH | O_NOFOLLOW);
	tell("read", read(place, text, 1));
	tell("read nothing", read(place, text, 0));
	tell("write", write(place, "x", 1));
	tell("seek", lseek(place, 0, SEEK_SET));
	tell("chmod", fchmod(place, 0700));
	tell("truncate", ftruncate(place, 0));
	tell("lock", fcntl(place, F_SETLK, &(struct flock){ .l_type = F_RDLCK }));
	tell("map", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, place, 0) == MAP_FAILED ? -1 : 0);
	tell("stat", fstat(place, &data));
	tell("dup", dup(place) < 0 ? -1 : 0);
	say("flags: %d", fcntl(place, F_GETFL) & O_PATH ? 1 : 0);
	tell("open again", open(by(place), O_RDWR) < 0 ? -1 : 0);
	say("a link's: %zd <%s>", readlinkat(link, "", text, 15), text);
	fstat(link, &data);
	say("link: %d", S_ISLNK(data.st_mode));
	tell("link by a place", linkat(place, "", AT_FDCWD, "hard", AT_EMPTY_PATH));
	tell("not a folder", open("file", O_PATH | O_DIRECTORY));
}

static void pipes(void)
{
	int ends[2], event = syscall(SYS_eventfd2, 0, 0);
	struct stat one, other;
	char text[4] = { 0 };
	need(pipe(ends) == 0, "pipe");
	int again = open(by(ends[0]), O_WRONLY);
	say("the other end: %zd", write(again, "abc", 3));
	say("read: %zd <%s>", read(ends[0], text, 3), text);
	fstat(ends[0], &one);
	stat(by(ends[1]), &other);
	say("one pipe: %d", one.st_ino == other.st_ino && S_ISFIFO(other.st_mode));
	tell("mode", fchmod(ends[0], 0640));
	fstat(ends[1], &one);
	say("of both: %o", one.st_mode & 0777);
	tell("a counter", open(by(event), O_RDWR));
	tell("its mode", stat(by(event), &one));
}

int main(int count, char **words)
{
	(void)words;
	if (count > 1) {
		say("the program, again");
		return 0;
	}
	alarm(30);
	umask(022);
	enter_folder();
	chain();
	tree();
	opened();
	folders();
	places();
	pipes();
	int program = open("/proc/self/exe", O_RDONLY);
	char path[64];
	snprintf(path, sizeof path, "%s", by(program));
	if (fork() == 0) {
		execl(path, "links", "again", NULL);
		tell("exec", -1);
		_exit(1);
	}
	int status;
	wait(&status);
	ended("an open program", status);
	return 0;
}
