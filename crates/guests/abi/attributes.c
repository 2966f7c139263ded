/* Links, owners, modes and times of files, and locks on them. */
#include "abi.h"
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

static void show(const char *what, const char *path)
{
	struct stat data;
	if (lstat(path, &data) < 0) {
		tell(what, -1);
		return;
	}
	say("%s: mode %o, owner %d:%d, names %ld, %ld.%09ld %ld.%09ld", what, data.st_mode, (int)data.st_uid, (int)data.st_gid,
	    (long)data.st_nlink, (long)data.st_atim.tv_sec, data.st_atim.tv_nsec, (long)data.st_mtim.tv_sec,
	    data.st_mtim.tv_nsec);
}

/* What statx gives: musl may not declare it. */
struct newer {
	uint32_t mask, block;
	uint64_t attributes;
	uint32_t names, user, group;
	uint16_t mode, unused;
	uint64_t number, bytes, blocks, attributes_mask;
	struct {
		int64_t seconds;
		uint32_t nanoseconds;
		int32_t unused;
	} accessed, born, changed, modified;
	uint32_t special_major, special_minor, device_major, device_minor;
	uint64_t others[14];
};

enum { TYPE = 1, BASIC = 0x7ff };

static int statx_of(int folder, const char *path, int flags, unsigned mask, struct newer *to)
{
	return syscall(SYS_statx, folder, path, flags, mask, to);
}

/* The same attributes by statx. */
static void show_newer(void)
{
	struct stat data;
	struct newer newer;
	need(lstat("l", &data) == 0 && statx_of(AT_FDCWD, "l", AT_SYMLINK_NOFOLLOW, BASIC, &newer) == 0, "statx");
	say("a link: mode %o, bytes %d", newer.mode, (int)newer.bytes);
	need(stat("l", &data) == 0 && statx_of(AT_FDCWD, "l", 0, BASIC, &newer) == 0, "statx");
	say("known: %#x", newer.mask & BASIC);
	say("as by stat: %d", newer.number == data.st_ino && newer.bytes == (uint64_t)data.st_size &&
	    newer.blocks == (uint64_t)data.st_blocks && newer.names == data.st_nlink &&
	    newer.modified.seconds == data.st_mtim.tv_sec && newer.modified.nanoseconds == data.st_mtim.tv_nsec &&
	    newer.accessed.seconds == data.st_atim.tv_sec && newer.user == data.st_uid && newer.group == data.st_gid &&
	    makedev(newer.device_major, newer.device_minor) == data.st_dev);
	need(stat("/dev/null", &data) == 0 && statx_of(AT_FDCWD, "/dev/null", 0, TYPE, &newer) == 0, "statx");
	say("a device: %u %u", newer.special_major, newer.special_minor);
	tell("of an open file", statx_of(0, "", AT_EMPTY_PATH, TYPE, &newer));
	tell("bad flags", statx_of(0, "", 0x8000, TYPE, &newer));
	tell("bad mask", statx_of(0, "", AT_EMPTY_PATH, 0x80000000, &newer));
	tell("no name", statx_of(0, "", 0, TYPE, &newer));
	tell("nothing", statx_of(AT_FDCWD, "nothing", 0, TYPE, &newer));
	tell("nowhere", statx_of(AT_FDCWD, "a", 0, TYPE, (struct newer *)nowhere));
}

static int wait_for_lock(void)
{
	int file = open("a", O_RDWR);
	int before = flock(file, LOCK_EX | LOCK_NB) == -1 && errno == EAGAIN;
	return before && flock(file, LOCK_EX) == 0;
}

int main(void)
{
	enter_folder();
	umask(022);
	struct timespec times[2] = { { 1000, 5 }, { 2000, 999999999 } };
	int file = open("a", O_RDWR | O_CREAT, 0666);
	tell("times", futimens(file, times));
	show("new", "a");
	tell("link", link("a", "b"));
	show("two names", "b");
	tell("there already", link("a", "b"));
	tell("nothing to link", link("c", "d"));
	tell("a folder", link(".", "d"));
	need(unlink("a") == 0, "unlink");
	show("one name", "b");
	rename("b", "a");
	struct stat data;
	need(fstat(file, &data) == 0, "fstat");
	say("open: names %ld", (long)data.st_nlink);
	need(symlink("a", "l") == 0, "symlink");
	tell("link to a link", linkat(AT_FDCWD, "l", AT_FDCWD, "m", 0));
	say("it is one: %d", lstat("m", &data) == 0 && S_ISLNK(data.st_mode));
	tell("link behind a link", linkat(AT_FDCWD, "l", AT_FDCWD, "n", AT_SYMLINK_FOLLOW));
	say("it is none: %d", lstat("n", &data) == 0 && S_ISREG(data.st_mode));
	show_newer();
	tell("bad flags", linkat(AT_FDCWD, "l", AT_FDCWD, "o", 0x8000));

	tell("owner", chown("l", 5, 6));
	futimens(file, times);
	show("behind the link", "a");
	tell("owner of the open file", fchown(file, 7, -1));
	futimens(file, times);
	show("only the owner", "a");
	tell("owner by folder", fchownat(AT_FDCWD, "a", -1, 9, 0));
	tell("owner of nothing", chown("nothing", 1, 1));
	tell("mode", fchmod(file, 0751));
	futimens(file, times);
	show("with another mode", "a");
	tell("mode by folder", fchmodat(AT_FDCWD, "a", 0640, 0));
	times[0].tv_nsec = UTIME_OMIT;
	times[1].tv_sec = 3000;
	tell("only one time", utimensat(AT_FDCWD, "a", times, 0));
	show("changed", "a");
	times[0].tv_nsec = 1000000000;
	tell("no time", utimensat(AT_FDCWD, "a", times, 0));
	tell("now", utimensat(AT_FDCWD, "a", NULL, 0));
	need(stat("a", &data) == 0, "stat");
	say("later: %d", data.st_mtime > 1000000 && data.st_atime > 1000000);
	need(write(file, "x", 1) == 1, "write");
	struct stat after;
	need(fstat(file, &after) == 0, "fstat");
	say("writing does not go back: %d", after.st_mtime >= data.st_mtime && after.st_ctime >= data.st_ctime);

	need(mkdir("folder", 0700) == 0 && mkdir("folder/one", 0700) == 0, "mkdir");
	need(stat("folder", &data) == 0, "stat");
	say("names of a folder: %ld", (long)data.st_nlink);

	int same = dup(file), other = open("a", O_RDWR);
	tell("lock", flock(file, LOCK_SH));
	tell("share", flock(other, LOCK_SH | LOCK_NB));
	tell("alone", flock(file, LOCK_EX | LOCK_NB));
	tell("give back", flock(other, LOCK_UN));
	tell("alone", flock(same, LOCK_EX | LOCK_NB));
	tell("not for others", flock(other, LOCK_SH | LOCK_NB));
	tell("nonsense", flock(other, LOCK_SH | LOCK_EX));
	tell("no file", flock(77, LOCK_SH));
	pid_t child = spawn(wait_for_lock);
	usleep(50000);
	close(file);
	tell("a copy keeps it", flock(other, LOCK_SH | LOCK_NB));
	usleep(50000);
	flock(same, LOCK_UN);
	reap("child gets it", child);
	tell("after its end", flock(other, LOCK_EX | LOCK_NB));
	return 0;
}
