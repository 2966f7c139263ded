/* What /proc tells of the process, compared with what the process did. */
#include "abi.h"
#include <sys/resource.h>
#include <time.h>
#include <sys/syscall.h>

static char text[1 << 18];

/* Reads all of a file; fewer bytes than are there do not count. */
static const char *contents(const char *path)
{
	int file = open(path, O_RDONLY);
	need(file >= 0, path);
	size_t length = 0;
	ssize_t got;
	while ((got = read(file, text + length, sizeof text - 1 - length)) > 0)
		length += got;
	text[length] = 0;
	close(file);
	return text;
}

/* The rest of the line of maps that begins at an address, or "". */
static const char *region(const char *at)
{
	static char line[256];
	char start[32];
	snprintf(start, sizeof start, "%08lx-", (unsigned long)at);
	contents("/proc/self/maps");
	const char *found = strstr(text, start);
	line[0] = 0;
	if (found && (found == text || found[-1] == '\n')) {
		unsigned long from, to, offset;
		char rights[8], path[128] = "";
		sscanf(found, "%lx-%lx %7s %lx %*s %*s%127[^\n]", &from, &to, rights, &offset, path);
		snprintf(line, sizeof line, "%lu pages %s at %lx <%s>", (to - from) / PAGE, rights, offset,
		         path + strspn(path, " "));
	}
	return line;
}

/* A number of KiB in status or smaps, from where `from` begins. */
static long field(const char *from, const char *name)
{
	const char *found = strstr(from, name);
	return found ? strtol(found + strlen(name), NULL, 10) : -1;
}

static unsigned long long page_word(char *at)
{
	int file = open("/proc/self/pagemap", O_RDONLY);
	unsigned long long word = 0;
	need(pread(file, &word, 8, (unsigned long)at / PAGE * 8) == 8, "pagemap");
	close(file);
	return word;
}

static void handle(int signal)
{
	(void)signal;
}

/* The signals of a line of `status`, of those that the program has to do with. */
static unsigned long signals(const char *name)
{
	const char *found = strstr(text, name);
	unsigned long mine = 1ul << (SIGUSR1 - 1) | 1ul << (SIGUSR2 - 1) | 1ul << (SIGHUP - 1);
	return found ? strtoul(found + strlen(name), NULL, 16) & mine : ~0ul;
}

/* Signals, times and limits. */
static void accounts(void)
{
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGHUP, handle);
	kill(getpid(), SIGUSR1);
	contents("/proc/self/status");
	say("pending %lx, %lx, blocked %lx, ignored %lx, caught %lx", signals("SigPnd:"), signals("ShdPnd:"), signals("SigBlk:"),
	    signals("SigIgn:"), signals("SigCgt:"));
	say("descriptors: %d, seccomp: %ld", field(text, "FDSize:") >= 64, field(text, "Seccomp:"));
	for (clock_t end = clock() + CLOCKS_PER_SEC / 10; clock() < end;)
		;
	contents("/proc/self/stat");
	char *rest = strrchr(text, ')');
	unsigned long user = 0, kernel = 0, start = 0;
	sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %lu", &user, &kernel, &start);
	say("used: %d, began: %d", user + kernel >= 5 && user + kernel < 1000, start > 0);
	double up = 0, idle = -1;
	int numbers = sscanf(contents("/proc/uptime"), "%lf %lf", &up, &idle);
	say("up: %d numbers, %d", numbers, up * 100 >= start && idle >= 0);
	int last = 0;
	say("load: %d", sscanf(contents("/proc/loadavg"), "%*f %*f %*f %*d/%*d %d", &last) == 1 && last >= getpid());
	contents("/proc/self/environ");
	say("environment: %d", getenv("HOME") && strstr(text, "HOME=") && strcmp(strstr(text, "HOME=") + 5, getenv("HOME")) == 0);
	struct rlimit limit = { 100, 200 };
	setrlimit(RLIMIT_NOFILE, &limit);
	char *line = strstr(contents("/proc/self/limits"), "Max open files");
	say("limit: %s", line ? strtok(line, "\n") : "none");
}

/* A UUID of the random kind: its length, version and variant. */
static int is_uuid(const char *it)
{
	return strlen(it) == 37 && it[8] == '-' && it[13] == '-' && it[14] == '4' && it[18] == '-' &&
	       strchr("89ab", it[19]) != NULL && it[23] == '-' && it[36] == '\n';
}

static void random_numbers(void)
{
	char first[64];
	snprintf(first, sizeof first, "%s", contents("/proc/sys/kernel/random/boot_id"));
	contents("/proc/sys/kernel/random/boot_id");
	say("since the start: %d, the same: %d", is_uuid(text), strcmp(first, text) == 0);
	snprintf(first, sizeof first, "%s", contents("/proc/sys/kernel/random/uuid"));
	contents("/proc/sys/kernel/random/uuid");
	say("a new one: %d, the same: %d", is_uuid(text), strcmp(first, text) == 0);
}

int main(void)
{
	enter_folder();
	char *hole = map(9, PROT_NONE, MAP_PRIVATE);
	char *at = mmap(hole + PAGE, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say("private: %s", region(at));
	mprotect(at + PAGE, PAGE, PROT_READ);
	say("split: %s", region(at));
	say("split: %s", region(at + PAGE));
	say("split: %s", region(at + 2 * PAGE));
	int file = open("file", O_RDWR | O_CREAT, 0600);
	need(ftruncate(file, 3 * PAGE) == 0, "ftruncate");
	char *mapped = mmap(hole + 6 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, PAGE);
	const char *line = region(mapped);
	say("file: %.20s, its name: %d", line, strstr(line, "/file>") != NULL);
	rename("file", "other");
	say("renamed: %d", strstr(region(mapped), "/other>") != NULL);
	char path[64], link[256];
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	int again = open(path, O_RDONLY);
	need(again >= 0 && lseek(file, 5, SEEK_SET) == 5, path);
	say("opened again: at %ld, for writing %d", (long)lseek(again, 0, SEEK_CUR), write(again, "x", 1) == 1);
	close(again);
	say("gone: %d", (munmap(mapped, 2 * PAGE), *region(mapped) == 0));

	contents("/proc/self/status");
	long before = field(text, "VmSize:");
	say("pid: %d, parent: %d, threads: %ld", field(text, "\nPid:") == getpid(), field(text, "PPid:") == getppid(),
	    field(text, "Threads:"));
	char *more = memory(256);
	long resident = field(contents("/proc/self/status"), "RssAnon:");
	say("larger by %ld KiB", field(text, "VmSize:") - before);
	for (int i = 0; i < 256; i++)
		more[i * PAGE] = 1;
	say("resident: %d", field(contents("/proc/self/status"), "RssAnon:") - resident >= 1024);
	say("locked: %ld", (mlock(more, 3 * PAGE), field(contents("/proc/self/status"), "VmLck:")));
	munlock(more, 3 * PAGE);
	tell("lock what is there", syscall(SYS_mlock2, more, 2 * PAGE, 1));
	say("locked: %ld", field(contents("/proc/self/status"), "VmLck:"));
	tell("lock somehow", syscall(SYS_mlock2, more, 2 * PAGE, 2));
	munlock(more, 3 * PAGE);

	say("never touched: %llx", page_word(at) >> 56);
	at[0] = 1;
	say("touched: present %d, alone %d, of a file %d", (int)(page_word(at) >> 63), (int)(page_word(at) >> 56 & 1),
	    (int)(page_word(at) >> 61 & 1));
	int map_file = open("/proc/self/pagemap", O_RDONLY);
	char odd[12];
	tell("no whole words", pread(map_file, odd, 12, 0));
	tell("no whole offset", pread(map_file, odd, 8, 4));

	char start[32];
	snprintf(start, sizeof start, "%08lx-", (unsigned long)at);
	const char *entry = strstr(contents("/proc/self/smaps"), start);
	need(entry != NULL, "smaps");
	say("smaps: size %ld, resident %ld, dirty %ld, anonymous %ld", field(entry, "Size:"), field(entry, "Rss:"),
	    field(entry, "Private_Dirty:"), field(entry, "Anonymous:"));

	snprintf(path, sizeof path, "/proc/%d/statm", getpid());
	long pages = strtol(contents(path), NULL, 10);
	say("statm agrees: %d", pages * 4 == field(contents("/proc/self/status"), "VmSize:"));
	ssize_t length = readlink("/proc/self", link, sizeof link - 1);
	link[length < 0 ? 0 : length] = 0;
	say("self: %d", atoi(link) == getpid());
	length = readlink("/proc/self/exe", link, sizeof link - 1);
	link[length < 0 ? 0 : length] = 0;
	struct stat one, two;
	say("program: %d", stat(link, &one) == 0 && stat("/proc/self/exe", &two) == 0 && one.st_ino == two.st_ino);
	length = readlink("/proc/self/cwd", link, sizeof link - 1);
	link[length < 0 ? 0 : length] = 0;
	char here[256];
	say("folder: %d", strcmp(link, getcwd(here, sizeof here)) == 0);
	say("memory: %d", field(contents("/proc/meminfo"), "MemTotal:") >= field(text, "MemFree:"));
	say("mode: %d", atoi(contents("/proc/sys/vm/overcommit_memory")) <= 2);
	random_numbers();
	say("processors: %d", strncmp(contents("/sys/devices/system/cpu/online"), "0", 1) == 0);
	tell("no such process", open("/proc/999999999/maps", O_RDONLY));
	snprintf(path, sizeof path, "/proc/0%d/maps", getpid());
	tell("another name for it", open(path, O_RDONLY));
	tell("through it", open("/proc/self/../self/maps", O_RDONLY));
	tell("a file as a folder", open("/proc/version/maps", O_RDONLY));
	tell("a folder in it", mkdir("/proc/folder", 0700));
	tell("a file in it", open("/proc/file", O_RDWR | O_CREAT, 0600));
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof path, "/proc/%d/stat", child);
	for (int i = 0; i < 2000 && strstr(contents(path), ") S ") == NULL; i++)
		usleep(1000);
	say("sleeps: %d, itself: %d", strstr(text, ") S ") != NULL,
	    strstr(contents("/proc/self/stat"), ") R ") != NULL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = fork();
	if (child == 0)
		_exit(0);
	snprintf(path, sizeof path, "/proc/%d/status", child);
	siginfo_t info;
	need(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0 || errno == EINVAL, "waitid");
	waitpid(child, NULL, 0);
	tell("a child that was waited for", open(path, O_RDONLY));
	accounts();
	return 0;
}
