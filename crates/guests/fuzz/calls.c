/* Makes system calls at random: `calls SEED COUNT`. For guests only: what it does to a machine that people use is anybody's
 * guess. The calls of a worker follow from its seed; workers that die, or wait, are replaced. Beside them live canaries,
 * processes that must notice nothing. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, WORKERS = 4, CANARIES = 2, PAGES = 64, BATCH = 64, NUMBERS = 460, PATIENCE = 5, TICK = 10000 };

/* How many calls each worker has made, or whatever it has written there; and how often canaries have looked, which workers
 * cannot reach. */
static _Atomic unsigned long *made, *rounds;
static pid_t workers[WORKERS], canaries[CANARIES];
static uint64_t state;
static char *arena;
enum { ARENA = 16 };

static uint64_t random_word(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

static uint64_t below(uint64_t limit)
{
	return random_word() % limit;
}

static uint64_t address(void)
{
	static const uint64_t odd[] = { 0, 8, 4096, -1ul, -4096ul, 1ul << 63 | 4096, 1ul << 62, (1ul << 47) - 4096, 1ul << 47,
		0xffff800000000000, 0xffffffff80100000 };
	switch (below(8)) {
	case 0:
		return odd[below(sizeof odd / sizeof *odd)];
	case 1:
		return (uintptr_t)arena + ARENA * PAGE - below(64);
	case 2:
		return (uintptr_t)&calloc + below(64);
	default:
		return (uintptr_t)arena + (below(ARENA * PAGE) & ~7ul);
	}
}

static uint64_t length(void)
{
	static const uint64_t odd[] = { 0, 1, 7, 4095, 4096, 4097, 1 << 16, 1 << 20, 1ul << 31, 1ul << 32, 1ul << 40, 1ul << 47,
		1ul << 63, -1ul, -4096ul };
	return below(4) ? odd[below(sizeof odd / sizeof *odd)] : below(1 << 14);
}

static uint64_t argument(void)
{
	switch (below(8)) {
	case 0:
	case 1:
		return address();
	case 2:
		return length();
	case 3:
		return below(24);
	case 4:
		return 1ul << below(64);
	case 5:
		return random_word() & random_word() & random_word();
	case 6:
		return -below(4096);
	default:
		return below(1 << 12);
	}
}

/* Paths and structures that calls may find. */
static void fill(void)
{
	static const char *const names[] = { "a", "b", "a/b", ".", "..", "/proc/self/maps", "/proc/self/exe", "/proc/self/pagemap",
		"/dev/zero", "/dev/null", "/proc/self", "" };
	for (int i = 0; i < 64; i++) {
		uint64_t word = argument();
		memcpy(arena + (below(ARENA * PAGE - 8) & ~7ul), &word, 8);
	}
	/* Addresses of sockets, and the heads of control data. */
	for (int i = 0; i < 8; i++) {
		unsigned char four[16] = { AF_INET, 0, 0, below(4), 127, 0, 0, 1 }, six[28] = { AF_INET6, 0, 0, below(4), [23] = 1 };
		unsigned char path[6] = { AF_UNIX, 0, 0, 'a' + below(4) };
		uint64_t head[3] = { 16 + below(12), SOL_SOCKET | (1 + below(2)) << 32, below(8) };
		memcpy(arena + (below(ARENA * PAGE - 32) & ~7ul), four, sizeof four);
		memcpy(arena + (below(ARENA * PAGE - 32) & ~7ul), six, sizeof six);
		memcpy(arena + (below(ARENA * PAGE - 32) & ~7ul), path, sizeof path);
		memcpy(arena + (below(ARENA * PAGE - 32) & ~7ul), head, sizeof head);
	}
	for (int i = 0; i < 16; i++)
		strcpy(arena + (below(ARENA * PAGE - 32) & ~7ul), names[below(sizeof names / sizeof *names)]);
}

/* Calls that would reach other processes by their numbers, which is not what is tried here. */
static int names_process(long number)
{
	static const long such[] = { SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_prlimit64,
		SYS_sched_setaffinity };
	for (size_t i = 0; i < sizeof such / sizeof *such; i++)
		if (such[i] == number)
			return 1;
	return 0;
}

/* Sockets that calls find: each kind, and pairs. */
static void open_sockets(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	int ends[2];
	for (int i = 0; i < 3; i++) {
		socketpair(AF_UNIX, types[i], 0, ends);
		socket(AF_UNIX, types[i], 0);
		socket(below(2) ? AF_INET : AF_INET6, types[i] | SOCK_NONBLOCK, 0);
	}
}

static void make_calls(int worker, uint64_t seed)
{
	struct rlimit files = { 16 << 20, 16 << 20 }, memory = { 64 << 20, 64 << 20 };
	char name[32];
	int ends[2];
	state = seed;
	munmap((void *)rounds, PAGE);
	snprintf(name, sizeof name, "/tmp/fuzz-%d", worker);
	mkdir(name, 0700);
	if (chdir(name) || pipe(ends))
		_exit(1);
	for (int fd = 0; fd < 3; fd++)
		dup2(open("/dev/null", O_RDWR), fd);
	open_sockets();
	setrlimit(RLIMIT_FSIZE, &files);
	setrlimit(RLIMIT_AS, &memory);
	arena = mmap(NULL, (ARENA + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(arena + ARENA * PAGE, PAGE);
	pid_t self = getpid();
	for (int i = 0; i < BATCH; i++) {
		uint64_t with[6];
		fill();
		long number = below(NUMBERS);
		for (int at = 0; at < 6; at++)
			with[at] = argument();
		if (names_process(number))
			with[0] = self;
		made[worker]++;
		if (number == SYS_reboot)
			continue;
		syscall(number, with[0], with[1], with[2], with[3], with[4], with[5]);
		/* A child of a fork is done. */
		if (syscall(SYS_getpid) != self || syscall(SYS_gettid) != self)
			syscall(SYS_exit, 0);
	}
	_exit(0);
}

/* Memory, a file and registers that nobody else may change. */
static void sing(int canary)
{
	static unsigned long memory[PAGES * PAGE / 8];
	char name[32];
	double before = 1.0 / (canary + 3);
	volatile double kept = before;
	snprintf(name, sizeof name, "/tmp/canary-%d", canary);
	int file = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
	for (size_t i = 0; i < sizeof memory / 8; i++)
		memory[i] = i * 0x9e3779b97f4a7c15 + canary;
	if (write(file, memory, sizeof memory) != sizeof memory)
		_exit(10);
	for (;;) {
		unsigned long found;
		for (size_t i = 0; i < sizeof memory / 8; i++)
			if (memory[i] != i * 0x9e3779b97f4a7c15 + canary)
				_exit(11);
		for (size_t i = 0; i < PAGES; i++)
			if (pread(file, &found, 8, i * PAGE) != 8 || found != i * PAGE / 8 * 0x9e3779b97f4a7c15 + canary)
				_exit(12);
		if (kept != before || getppid() == 1)
			_exit(13);
		rounds[canary]++;
		usleep(TICK);
	}
}

static int is_known(pid_t process)
{
	for (int i = 0; i < WORKERS; i++)
		if (workers[i] == process)
			return 1;
	for (int i = 0; i < CANARIES; i++)
		if (canaries[i] == process)
			return 1;
	return process <= getpid();
}

/* Ends what workers have left behind. */
static void sweep(void)
{
	DIR *all = opendir("/proc");
	for (struct dirent *one; all && (one = readdir(all));) {
		pid_t process = atoi(one->d_name);
		if (process > 0 && !is_known(process))
			kill(process, SIGKILL);
	}
	if (all)
		closedir(all);
}

static void start(int worker, uint64_t seed)
{
	pid_t child = fork();
	if (child == 0)
		make_calls(worker, seed);
	workers[worker] = child > 0 ? child : 0;
}

int main(int count, char **arguments)
{
	uint64_t seed = count > 1 ? strtoull(arguments[1], NULL, 0) : 1, next = 1;
	unsigned long wanted = count > 2 ? strtoul(arguments[2], NULL, 0) : 10000, total = 0, seen[WORKERS] = { 0 };
	int idle[WORKERS] = { 0 }, status;
	made = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	rounds = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < CANARIES; i++)
		if ((canaries[i] = fork()) == 0)
			sing(i);
	while (total < wanted) {
		for (int i = 0; i < WORKERS; i++) {
			if (workers[i] == 0) {
				seen[i] = made[i] = 0;
				start(i, seed * 0x9e3779b97f4a7c15 + next++);
				idle[i] = 0;
			}
			/* One that waits is told to end. */
			if (seen[i] != made[i])
				idle[i] = 0;
			else if (idle[i]++ == PATIENCE)
				kill(workers[i], SIGKILL);
			seen[i] = made[i];
		}
		usleep(TICK);
		for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
			for (int i = 0; i < WORKERS; i++)
				if (workers[i] == ended) {
					workers[i] = 0;
					total += made[i] < BATCH ? made[i] : BATCH;
				}
			for (int i = 0; i < CANARIES; i++)
				if (canaries[i] == ended) {
					printf("canary %d: status %#x\n", i, status);
					return 1;
				}
		}
		if (next % 16 == 0)
			sweep();
	}
	for (int i = 0; i < CANARIES; i++) {
		unsigned long before = rounds[i];
		for (int wait = 0; rounds[i] == before; wait++) {
			if (wait == 1000) {
				printf("canary %d is silent\n", i);
				return 1;
			}
			usleep(TICK);
		}
	}
	memset(workers, 0, sizeof workers);
	memset(canaries, 0, sizeof canaries);
	sweep();
	printf("%lu calls or more, canaries live\n", wanted);
	return 0;
}
