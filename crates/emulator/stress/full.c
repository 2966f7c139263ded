/* Takes the kernel's memory by names, folders, locks and the texts of /proc, until it is refused more; each time gives it
 * back, and finds room again. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, NAMES = 200000, DEPTH = 20000, LOCKS = 300000, REGIONS = 60000 };

static void need(int good, const char *what)
{
	if (good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* Whether an error is one of those that tell of too little memory. */
static int is_refusal(void)
{
	return errno == ENOSPC || errno == ENOMEM || errno == ENFILE || errno == ENOLCK || errno == EAGAIN;
}

static void names(void)
{
	char name[32];
	int count = 0;
	for (; count < NAMES; count++) {
		sprintf(name, "f%d", count);
		if (mknod(name, S_IFREG | 0600, 0)) {
			need(is_refusal(), "a name");
			break;
		}
	}
	/* A look at each of them, with the name of a file that has gone. */
	int file = open("/proc/self/maps", O_RDONLY);
	if (file >= 0) {
		char text[PAGE];
		while (read(file, text, sizeof text) > 0)
			;
		close(file);
	}
	printf("names: %s\n", count > 1000 ? "many" : "few");
	while (count-- > 0) {
		sprintf(name, "f%d", count);
		need(unlink(name) == 0, "unlink");
	}
}

static void folders(void)
{
	static char path[1 << 18];
	int depth = 0;
	for (; depth < DEPTH; depth++) {
		if (mkdir("d", 0700)) {
			need(is_refusal(), "a folder");
			break;
		}
		need(chdir("d") == 0, "chdir");
	}
	if (getcwd(path, sizeof path) == NULL)
		need(errno == ENAMETOOLONG || is_refusal(), "getcwd");
	printf("folders: %s\n", depth > 1000 ? "many" : "few");
	while (depth-- > 0) {
		need(chdir("..") == 0, "up");
		need(rmdir("d") == 0, "rmdir");
	}
}

static void locks(void)
{
	int file = open("locked", O_CREAT | O_RDWR, 0600), count = 0;
	time_t start = time(NULL);
	for (; count < LOCKS; count++) {
		struct flock how = { .l_type = F_WRLCK, .l_start = 2 * count, .l_len = 1 };
		if (fcntl(file, F_SETLK, &how)) {
			need(is_refusal(), "a lock");
			break;
		}
	}
	printf("locks: %s, %s\n", count > 10000 ? "many" : "few", time(NULL) - start < 40 ? "soon" : "late");
	close(file);
	unlink("locked");
}

static void texts(void)
{
	static const char *const files[] = { "/proc/self/maps", "/proc/self/smaps", "/proc/self/status" };
	int count = 0;
	char *at = mmap(NULL, (size_t)REGIONS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	need(at != MAP_FAILED, "mmap");
	for (; count < REGIONS; count += 2)
		if (mprotect(at + (size_t)count * PAGE, PAGE, PROT_READ)) {
			need(is_refusal(), "a region");
			break;
		}
	for (int i = 0; i < 3; i++) {
		char text[PAGE];
		int file = open(files[i], O_RDONLY);
		ssize_t got = -1;
		need(file >= 0 || is_refusal(), files[i]);
		while (file >= 0 && (got = read(file, text, sizeof text)) > 0)
			;
		need(got == 0 || is_refusal(), files[i]);
		close(file);
	}
	munmap(at, (size_t)REGIONS * PAGE);
	printf("regions: %s\n", count > 1000 ? "many" : "few");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	need(chdir("/tmp") == 0, "/tmp");
	names();
	folders();
	locks();
	texts();
	names();
	need(close(open("last", O_CREAT | O_WRONLY, 0600)) == 0, "last");
	puts("room again");
	return 0;
}
