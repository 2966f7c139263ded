/* The last name of a path: links, `.` and `..`, slashes behind it, and none at all, for each call that has one. */
#include "abi.h"
#include <dirent.h>
#include <sys/time.h>

static void make(const char *name)
{
	close(open(name, O_CREAT | O_WRONLY, 0600));
}

static void there(const char *name)
{
	struct stat data;
	say("%s is there: %d", name, lstat(name, &data) == 0);
}

/* A new start. */
static void fresh(void)
{
	static const char *const old[] = { "file", "folder", "link", "way", "new", "other" };
	for (size_t i = 0; i < sizeof old / sizeof *old; i++)
		if (unlink(old[i]))
			rmdir(old[i]);
	make("file");
	mkdir("folder", 0700);
	symlink("file", "link");
	symlink("folder", "way");
}

static const char *const NAMES[] = {
	"", ".", "..", "/", "file/", "folder/", "folder/.", "folder/..", "link/", "way/", "new/", "new/.", "file/x", "./new",
};

enum { COUNT = sizeof NAMES / sizeof *NAMES };

static long opened(int file)
{
	if (file < 0)
		return -1;
	return close(file);
}

/* Only the error is of interest. */
static long call(int which, const char *name)
{
	char text[8];
	struct stat data;
	switch (which) {
	case 0: return mkdir(name, 0700);
	case 1: return rmdir(name);
	case 2: return unlink(name);
	case 3: return symlink("x", name);
	case 4: return link("file", name);
	case 5: return mknod(name, S_IFIFO | 0600, 0);
	case 6: return rename(name, "other");
	case 7: return rename("file", name);
	case 8: return rename("folder", name);
	case 9: return readlink(name, text, 8) < 0 ? -1 : 0;
	case 10: return lstat(name, &data);
	case 11: return opened(open(name, O_RDONLY));
	case 12: return opened(open(name, O_CREAT | O_WRONLY, 0600));
	case 13: return opened(open(name, O_CREAT | O_EXCL | O_WRONLY, 0600));
	case 14: return truncate(name, 0);
	case 15: return chmod(name, 0700);
	case 16: return link(name, "other");
	default: return access(name, F_OK);
	}
}

static const char *const CALLS[] = {
	"mkdir", "rmdir", "unlink", "symlink", "link to", "mknod", "rename", "rename file to", "rename folder to", "readlink",
	"lstat", "open", "create", "create new", "truncate", "chmod", "link", "access",
};

static void each(void)
{
	for (int which = 0; which < (int)(sizeof CALLS / sizeof *CALLS); which++)
		for (int i = 0; i < COUNT; i++) {
			fresh();
			/* The root is another file system in places, and its attributes are left alone. */
			if (NAMES[i][0] == '/' && (which == 6 || which == 7 || which == 8 || which == 15 || which == 16))
				continue;
			char what[64];
			snprintf(what, sizeof what, "%s \"%s\"", CALLS[which], NAMES[i]);
			tell(what, call(which, NAMES[i]));
		}
}

/* Links that lead nowhere yet. */
static void dangling(void)
{
	fresh();
	symlink("target", "to");
	tell("mkdir", mkdir("to", 0700));
	tell("mknod", mknod("to", S_IFIFO | 0600, 0));
	tell("symlink", symlink("x", "to"));
	tell("link", link("file", "to"));
	tell("create, only if new", open("to", O_CREAT | O_EXCL | O_WRONLY, 0600));
	tell("create, not by a link", open("to", O_CREAT | O_NOFOLLOW | O_WRONLY, 0600));
	tell("truncate", truncate("to", 0));
	there("target");
	tell("create", open("to", O_CREAT | O_WRONLY, 0600) < 0 ? -1 : 0);
	there("target");
	symlink("deep/target", "second");
	symlink("second", "first");
	tell("where no folder is", open("first", O_CREAT | O_WRONLY, 0600));
	mkdir("deep", 0700);
	tell("where one is", open("first", O_CREAT | O_WRONLY, 0600) < 0 ? -1 : 0);
	there("deep/target");
	symlink("round", "round");
	tell("in a circle", open("round", O_CREAT | O_WRONLY, 0600));
	symlink("folder/", "slash");
	tell("of a folder", open("slash", O_CREAT | O_WRONLY, 0600));
	say("by the shell: %d", system("echo hello > by; ln -s made made-by; echo hello > made-by; test -f made"));
}

/* Where a folder goes. */
static void folders(void)
{
	fresh();
	tell("into itself", rename("folder", "folder/x"));
	mkdir("folder/in", 0700);
	tell("over one above it", rename("folder/in", "folder"));
	mkdir("full", 0700);
	make("full/x");
	tell("over one that is full", rename("folder", "full"));
	tell("over a file", rename("folder", "file"));
	tell("a file over it", rename("file", "folder"));
	tell("the same name", rename("file", "file"));
	link("file", "twin");
	tell("another name of it", rename("file", "twin"));
	there("file");
	int gone = open("full", O_RDONLY);
	unlink("full/x");
	rmdir("full");
	tell("into one that has gone", openat(gone, "x", O_CREAT | O_WRONLY, 0600));
	tell("a folder into it", mkdirat(gone, "x", 0700));
	tell("moved into it", renameat(AT_FDCWD, "file", gone, "x"));
	there("file");
}

int main(void)
{
	alarm(50);
	umask(022);
	enter_folder();
	mkdir("inner", 0700);
	need(chdir("inner") == 0, "inner");
	each();
	dangling();
	folders();
	return 0;
}
