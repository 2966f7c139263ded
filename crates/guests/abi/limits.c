/* Limits of a process, and what they limit. */
#include "abi.h"
#include <sys/resource.h>

static void set(const char *what, int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit limit = { soft, hard };
	tell(what, setrlimit(resource, &limit));
}

static rlim_t get(int resource)
{
	struct rlimit limit = { 0, 0 };
	getrlimit(resource, &limit);
	return limit.rlim_cur;
}

static int too_much_memory(void)
{
	set("address space", RLIMIT_AS, 64 << 20, RLIM_INFINITY);
	void *at = mmap(NULL, 128 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("more: %s", at == MAP_FAILED ? strerror(errno) : "ok");
	at = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("less: %s", at == MAP_FAILED ? strerror(errno) : "ok");
	return 0;
}

static int too_much_data(void)
{
	set("data", RLIMIT_DATA, 16 << 20, RLIM_INFINITY);
	void *at = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("to write: %s", at == MAP_FAILED ? strerror(errno) : "ok");
	at = mmap(NULL, 32 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("to read: %s", at == MAP_FAILED ? strerror(errno) : "ok");
	return 0;
}

static int use_stack(int depth)
{
	volatile char frame[32 << 10];
	frame[0] = frame[sizeof frame - 1] = (char)depth;
	return depth ? use_stack(depth - 1) + frame[0] : 0;
}

static int small_stack(void)
{
	set("stack", RLIMIT_STACK, 1 << 20, RLIM_INFINITY);
	return use_stack(40) & 0;
}

static int large_stack(void)
{
	return use_stack(40) & 0;
}

static int few_files(void)
{
	set("descriptors", RLIMIT_NOFILE, 8, 16);
	int last = -1, next;
	while ((next = dup(1)) >= 0)
		last = next;
	say("last %d, then %s", last, strerror(errno));
	tell("beyond", dup2(1, 8));
	tell("from there on", fcntl(1, F_DUPFD, 8));
	set("raise", RLIMIT_NOFILE, 12, 16);
	say("one more: %d", dup(1));
	return 0;
}

static int inherited(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_CORE, &limit);
	return limit.rlim_cur == 4096 && limit.rlim_max == 8192;
}

static volatile int signals;

static void count(int signal)
{
	signals += signal == SIGXFSZ;
}

static int small_files(void)
{
	int file = open("limited", O_RDWR | O_CREAT, 0600);
	set("size of files", RLIMIT_FSIZE, 10, RLIM_INFINITY);
	signal(SIGXFSZ, count);
	say("up to it: %zd", write(file, "0123456789abcdef", 16));
	tell("beyond", write(file, "x", 1));
	say("signals: %d", signals);
	tell("somewhere else", pwrite(file, "x", 1, 100));
	tell("larger", ftruncate(file, 11));
	tell("smaller", ftruncate(file, 9));
	say("signals: %d", signals);
	signal(SIGXFSZ, SIG_DFL);
	return write(file, "0123456789", 10) == 1 && write(file, "x", 1) == 0;
}

int main(void)
{
	enter_folder();
	set("soft above hard", RLIMIT_CORE, 2, 1);
	set("nonsense", 99, 1, 1);
	set("core", RLIMIT_CORE, 4096, 8192);
	say("core: %ld", (long)get(RLIMIT_CORE));
	reap("child inherits", spawn(inherited));
	struct rlimit old, new = { 0, 8192 };
	tell("prlimit", prlimit(getpid(), RLIMIT_CORE, &new, &old));
	say("was %ld, is %ld", (long)old.rlim_cur, (long)get(RLIMIT_CORE));
	tell("nobody", prlimit(999999999, RLIMIT_CORE, NULL, &old));
	tell("bad address", setrlimit(RLIMIT_CORE, (struct rlimit *)nowhere));
	say("stack: %ld", (long)get(RLIMIT_STACK));
	reap("memory", spawn(too_much_memory));
	reap("data", spawn(too_much_data));
	reap("deep", spawn(large_stack));
	reap("deep in a small stack", spawn(small_stack));
	reap("files", spawn(few_files));
	reap("small files", spawn(small_files));
	return 0;
}
