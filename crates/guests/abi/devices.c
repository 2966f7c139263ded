/* The memory devices. */
#include "abi.h"
#include <sys/sysmacros.h>

int main(void)
{
	static const char *const names[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom" };
	static char bytes[3 * PAGE];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct stat data;
		int file = open(names[i], O_RDWR);
		need(file >= 0, names[i]);
		need(fstat(file, &data) == 0, "fstat");
		memset(bytes, 7, sizeof bytes);
		ssize_t got = read(file, bytes, i < 3 ? sizeof bytes : 64);
		say("%s: character %d, major %d, read %zd", names[i], S_ISCHR(data.st_mode), major(data.st_rdev), got);
		say("zeroes: %d, sevens: %d", all(bytes, sizeof bytes, 0), all(bytes, sizeof bytes, 7));
		tell("write", write(file, "abc", 3));
		tell("write nothing", write(file, "abc", 0));
		tell("bad address", read(file, nowhere, 1));
		close(file);
	}
	int random = open("/dev/urandom", O_RDONLY);
	char other[64];
	need(read(random, bytes, 64) == 64 && read(random, other, 64) == 64, "read");
	say("the same twice: %d", memcmp(bytes, other, 64) == 0);
	int zero = open("/dev/zero", O_RDONLY);
	char *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, zero, 0);
	say("mapped zeroes: %d", at != MAP_FAILED && all(at, PAGE, 0));
	tell("writable", mprotect(at, PAGE, PROT_READ | PROT_WRITE));
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, PAGE);
	say("of one's own: %d", at != MAP_FAILED && (*at = 5));
	zero = open("/dev/zero", O_RDWR);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, zero, 0);
	pid_t child = fork();
	if (child == 0)
		_exit(*at = 9);
	reap("child", child);
	say("shared with a child: %d", *at);
	int null = open("/dev/null", O_RDWR);
	tell("nothing to map", (long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, null, 0));
	struct stat data;
	say("shared memory: %d", stat("/dev/shm", &data) == 0 && S_ISDIR(data.st_mode));
	return 0;
}
