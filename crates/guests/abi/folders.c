/* Folders, names and links. */
#include "abi.h"
#include <dirent.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What is in a folder, sorted. */
static void list(const char *name)
{
	char *names[64], line[1024] = "";
	int count = 0;
	DIR *folder = opendir(name);
	need(folder != NULL, name);
	for (struct dirent *one; count < 64 && (one = readdir(folder));)
		names[count++] = strdup(one->d_name);
	closedir(folder);
	qsort(names, count, sizeof *names, by_name);
	for (int i = 0; i < count; i++)
		strcat(strcat(line, " "), names[i]);
	say("%s:%s", name, line);
}

static void make(const char *name, const char *text)
{
	int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	need(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), name);
	close(file);
}

static void show(const char *name)
{
	char text[64];
	int file = open(name, O_RDONLY);
	if (file < 0) {
		tell(name, -1);
		return;
	}
	ssize_t got = read(file, text, sizeof text - 1);
	text[got > 0 ? got : 0] = 0;
	say("%s: <%s>", name, text);
	close(file);
}

static void about(const char *name)
{
	struct stat data;
	if (lstat(name, &data)) {
		tell(name, -1);
		return;
	}
	const char *kind = S_ISDIR(data.st_mode) ? "folder" : S_ISREG(data.st_mode) ? "file" : S_ISLNK(data.st_mode) ? "link" : "?";
	long size = S_ISDIR(data.st_mode) ? 0 : (long)data.st_size;
	say("%s: %s, mode %o, %ld bytes, %ld names", name, kind, data.st_mode & 07777, size,
	    S_ISDIR(data.st_mode) ? 0 : (long)data.st_nlink);
}

static void renaming(void)
{
	make("one", "1");
	make("two", "2");
	tell("rename", rename("one", "three"));
	show("one");
	show("three");
	tell("rename onto another", rename("three", "two"));
	show("two");
	tell("into a folder", rename("two", "folder/two"));
	list("folder");
	tell("a folder into itself", rename("folder", "folder/inner/x"));
	tell("nothing", rename("one", "x"));
	make("file", "f");
	tell("a folder onto a file", rename("folder/inner", "file"));
}

static void linking(void)
{
	make("a", "text");
	tell("link", link("a", "b"));
	about("b");
	tell("unlink", unlink("a"));
	about("b");
	show("b");
	tell("symbolic link", symlink("b", "s"));
	about("s");
	show("s");
	char text[16] = { 0 };
	say("it says: %zd <%s>", readlink("s", text, sizeof text), text);
	tell("not a link", readlink("b", text, sizeof text));
	symlink("loop", "loop");
	show("loop");
	symlink("folder", "way");
	show("way/two");
	tell("a link to a folder", link("folder", "x"));
	struct stat one, other;
	stat("s", &one);
	stat("b", &other);
	say("the same file: %d", one.st_ino == other.st_ino);
}

int main(void)
{
	umask(022);
	enter_folder();
	tell("folder", mkdir("folder", 0755));
	tell("again", mkdir("folder", 0755));
	tell("within", mkdir("folder/inner", 0700));
	tell("without the one above", mkdir("x/y", 0700));
	about("folder/inner");
	list(".");
	renaming();
	linking();
	list(".");
	tell("remove one with content", rmdir("folder"));
	tell("unlink a folder", unlink("folder"));
	unlink("folder/two");
	rmdir("folder/inner");
	tell("remove it", rmdir("folder"));
	tell("remove a file", rmdir("b"));
	tell("unlink nothing", unlink("folder"));
	char here[128], deeper[128];
	mkdir("down", 0755);
	need(getcwd(here, sizeof here) != NULL && chdir("down") == 0, "chdir");
	getcwd(deeper, sizeof deeper);
	say("down: %s", strncmp(deeper, here, strlen(here)) ? "?" : deeper + strlen(here));
	show("../b");
	tell("up", chdir(".."));
	tell("to a file", chdir("b"));
	tell("readable", access("b", R_OK));
	tell("missing", access("zz", F_OK));
	int folder = open("down", O_RDONLY | O_DIRECTORY);
	int file = openat(folder, "new", O_CREAT | O_RDWR, 0600);
	say("from a folder: %d", file >= 0);
	list("down");
	chmod("down/new", 0444);
	about("down/new");
	return 0;
}
