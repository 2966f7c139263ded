/* Files in memory: one content, whichever way it is reached. */
#include "abi.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile int code;

static void note(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	code = info->si_code;
	siglongjmp(back, 1);
}

static void load(const char *what, volatile char *at)
{
	if (sigsetjmp(back, 1) == 0)
		say("%s: %d", what, *at);
	else
		say("%s: SIGBUS, %s", what, code == BUS_ADRERR ? "beyond the end" : "?");
}

static int file;
static char *shared, *private;

static int store(void)
{
	shared[2] = 'z';
	return 0;
}

int main(void)
{
	enter_folder();
	file = open("f", O_RDWR | O_CREAT, 0600);
	need(file >= 0 && write(file, "abcdef", 6) == 6, "f");
	shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	need(shared != MAP_FAILED && private != MAP_FAILED, "mmap");
	say("mapped: <%s>, zeroes after it: %d", shared, all(shared + 6, PAGE - 6, 0));
	pwrite(file, "X", 1, 0);
	say("a write is seen: %c %c", shared[0], private[0]);
	shared[1] = 'Y';
	char text[7] = { 0 };
	pread(file, text, 6, 0);
	say("a store is read: <%s>", text);
	private[3] = 'P';
	pread(file, text, 6, 0);
	say("a private one is not: <%s> <%.6s>", text, private);
	pwrite(file, "Q", 1, 0);
	say("the private copy stays: %c %c", shared[0], private[0]);
	reap("child stores", spawn(store));
	pread(file, text, 6, 0);
	say("shared with it: <%s>", text);
	tell("sync", msync(shared, PAGE, MS_SYNC));
	struct sigaction how = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &how, NULL);
	load("second page", shared + PAGE);
	ftruncate(file, PAGE + 1);
	load("second page of a longer file", shared + PAGE);
	shared[PAGE] = 7;
	ftruncate(file, 3);
	load("second page of a shorter file", shared + PAGE);
	say("behind the end, zeroes: %d", all(shared + 3, PAGE - 3, 0));
	ftruncate(file, 2 * PAGE);
	load("what was cut off is zero", shared + PAGE);
	tell("unlink", unlink("f"));
	shared[PAGE] = 9;
	close(file);
	load("lives on in memory", shared + PAGE);
	int again = open("g", O_RDONLY | O_CREAT, 0600);
	tell("writable, of a file to read", (long)mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, again, 0));
	tell("not at a page", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, again, 5));
	tell("a copy of it is", (long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, again, 0));
	char *fault = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, again, 0);
	int other = open("h", O_RDWR | O_CREAT, 0600);
	tell("write from beyond a file's end", write(other, fault, 10));
	return 0;
}
