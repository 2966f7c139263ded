/* Makes one kind of object after the other until the kernel refuses one more, or ends the program that makes them:
 * exhaust [KIND...]. The kernel goes on: after each kind a child, a pipe and a page are there as before. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 1 << 20 };

static long made;
static char *program;

static void *sleeps(void *nothing)
{
	pause();
	return nothing;
}

static int threads(void)
{
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 4 * PAGE);
	pthread_t id;
	return pthread_create(&id, &small, sleeps, NULL);
}

static int processes(void)
{
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	return child < 0;
}

/* Processes that have ended, and nobody has asked how. */
static int zombies(void)
{
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	return child < 0;
}

/* Each process makes the next one and waits for it, and has memory of its own. */
static int tree(void)
{
	static char own[16 * PAGE];
	memset(own, (int)made, sizeof own);
	pid_t child = fork();
	if (child > 0) {
		waitpid(child, NULL, 0);
		_exit(0);
	}
	return child < 0;
}

/* Each program starts the next one and waits for it. */
static int programs(void)
{
	pid_t child = fork();
	if (child == 0) {
		char kind[] = "programs";
		char *arguments[] = { program, "-", kind, NULL };
		execv("/proc/self/exe", arguments);
		_exit(0);
	}
	if (child > 0) {
		waitpid(child, NULL, 0);
		_exit(0);
	}
	return 1;
}

/* Children with two MiB of arguments. */
static int arguments(void)
{
	enum { COUNT = 16, LENGTH = 100000 };
	static char text[LENGTH];
	memset(text, 'a', LENGTH - 1);
	pid_t child = fork();
	if (child == 0) {
		char *words[COUNT + 4] = { program, "-", "sleep" };
		for (int i = 3; i < COUNT + 3; i++)
			words[i] = text;
		execv("/proc/self/exe", words);
		/* Refused: that is all. */
		kill(0, SIGKILL);
	}
	return child < 0;
}

static int files(void)
{
	char name[64];
	snprintf(name, sizeof name, "/tmp/exhaust/a-file-with-a-long-name-%ld", made);
	int file = open(name, O_CREAT | O_WRONLY, 0600);
	close(file);
	return file < 0;
}

static int folders(void)
{
	return mkdir("d", 0700) != 0 || chdir("d") != 0;
}

static int links(void)
{
	char name[64];
	static char to[PAGE - 1];
	memset(to, 'x', sizeof to - 1);
	snprintf(name, sizeof name, "/tmp/exhaust/%ld", made);
	return symlink(to, name);
}

static int data(void)
{
	static char part[1 << 20];
	static int file = -1;
	if (file < 0)
		file = open("/tmp/exhaust/data", O_CREAT | O_WRONLY, 0600);
	return write(file, part, sizeof part) != sizeof part;
}

/* A page of each 2 MiB of a file, so that little memory has long lists. */
static int holes(void)
{
	static int file = -1;
	if (file < 0)
		file = open("/tmp/exhaust/holes", O_CREAT | O_WRONLY, 0600);
	return pwrite(file, "x", 1, made << 21) != 1;
}

/* The same in private memory. */
static int tables(void)
{
	enum { LENGTH = 40 };
	static char *at;
	if (!at)
		at = mmap(NULL, 1ul << LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED || made >= 1l << (LENGTH - 21))
		return 1;
	at[made << 21] = 1;
	return 0;
}

static int mappings(void)
{
	char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED || mprotect(at, PAGE, PROT_READ) != 0;
}

/* The text of many mappings. */
static int texts(void)
{
	static char part[1 << 16];
	for (int i = 0; i < 20000 && !mappings(); i++)
		;
	int file = open("/proc/self/smaps", O_RDONLY);
	while (read(file, part, sizeof part) > 0)
		;
	return 1;
}

/* Open files, of many processes. */
static int descriptors(void)
{
	int ends[2];
	if (pipe(ends) == 0 || eventfd(0, 0) >= 0 || open("/dev/null", O_RDONLY) >= 0)
		return 0;
	pid_t child = fork();
	if (child > 0)
		pause();
	if (child == 0) {
		struct rlimit limit;
		getrlimit(RLIMIT_NOFILE, &limit);
		for (unsigned i = 0; i < limit.rlim_cur; i++)
			close(i);
	}
	return child < 0;
}

/* Full pipes, as large as they may be. */
static int pipes(void)
{
	static char part[1 << 20];
	int ends[2];
	if (pipe2(ends, O_NONBLOCK) != 0)
		return 1;
	fcntl(ends[1], F_SETPIPE_SZ, sizeof part);
	return write(ends[1], part, sizeof part) <= 0;
}

/* Pairs of sockets that are full both ways. */
static int sockets(void)
{
	static char part[1 << 20];
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
		return 1;
	return write(ends[0], part, sizeof part) <= 0 || write(ends[1], part, sizeof part) <= 0;
}

static int memfds(void)
{
	int file = syscall(SYS_memfd_create, "memory", 0);
	static char part[1 << 20];
	return file < 0 || write(file, part, sizeof part) != sizeof part;
}

static int segments(void)
{
	int number = shmget(IPC_PRIVATE, 16 * PAGE, 0600);
	char *at = number < 0 ? (void *)-1 : shmat(number, NULL, 0);
	if (at == (void *)-1)
		return 1;
	memset(at, 1, 16 * PAGE);
	return shmdt(at);
}

static int semaphores(void)
{
	return semget(IPC_PRIVATE, 250, 0600) < 0;
}

static int messages(void)
{
	static struct {
		long type;
		char text[8000];
	} message = { 1, "" };
	static int queue = -1;
	if (queue >= 0 && msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0)
		return 0;
	if (queue >= 0 && errno != EAGAIN)
		return 1;
	queue = msgget(IPC_PRIVATE, 0600);
	return queue < 0;
}

static int locks(void)
{
	static int file = -1;
	if (file < 0)
		file = open("/tmp/exhaust/locked", O_CREAT | O_RDWR, 0600);
	struct flock lock = { .l_type = F_WRLCK, .l_start = 2 * made, .l_len = 1 };
	return fcntl(file, F_SETLK, &lock);
}

/* Signals that are queued for many processes. */
static int signals(void)
{
	union sigval value = { 0 };
	if (sigqueue(getpid(), SIGRTMIN + 1, value) == 0)
		return 0;
	pid_t child = fork();
	if (child > 0)
		pause();
	return child < 0;
}

static const struct kind {
	const char *name;
	int (*more)(void);
} kinds[] = {
	{ "threads", threads }, { "processes", processes }, { "zombies", zombies }, { "tree", tree },
	{ "programs", programs }, { "arguments", arguments }, { "files", files }, { "folders", folders },
	{ "links", links }, { "data", data }, { "holes", holes }, { "tables", tables },
	{ "mappings", mappings }, { "texts", texts }, { "descriptors", descriptors }, { "pipes", pipes },
	{ "sockets", sockets },
	{ "memfds", memfds }, { "segments", segments }, { "semaphores", semaphores }, { "messages", messages },
	{ "locks", locks }, { "signals", signals },
};

static void make(const struct kind *kind)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	chdir("/tmp/exhaust");
	while (made < MOST && kind->more() == 0)
		made++;
	printf("%s: %ld%s\n", kind->name, made, made == MOST ? ", no limit" : "");
	fflush(NULL);
	/* Deep folders are found by their way back only. */
	if (kind->more == folders)
		while (chdir("..") == 0 && rmdir("d") == 0)
			;
	kill(0, SIGKILL);
}

/* Takes away what outlives its makers. */
static void clean(void)
{
	for (int place = 0; place < 1 << 15; place++) {
		struct shmid_ds segment;
		struct msqid_ds queue;
		struct semid_ds set;
		int number = shmctl(place, SHM_STAT, &segment);
		shmctl(number, IPC_RMID, NULL);
		number = msgctl(place, MSG_STAT, &queue);
		msgctl(number, IPC_RMID, NULL);
		number = semctl(place, 0, SEM_STAT, &set);
		semctl(number, 0, IPC_RMID);
	}
	chdir("/tmp/exhaust");
	DIR *folder = opendir(".");
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		unlink(entry->d_name);
	if (folder)
		closedir(folder);
}

static int works(void)
{
	int ends[2], status;
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || pipe(ends) != 0)
		return 0;
	*page = 1;
	munmap(page, PAGE);
	pid_t child = fork();
	if (child == 0)
		_exit(write(ends[1], "x", 1) == 1 ? 7 : 1);
	char byte;
	int good = child > 0 && read(ends[0], &byte, 1) == 1 && waitpid(child, &status, 0) == child;
	close(ends[0]);
	close(ends[1]);
	return good && WEXITSTATUS(status) == 7;
}

/* What has been killed needs some time to end. */
static int works_soon(void)
{
	for (int i = 0; i < 500; i++) {
		if (works())
			return 1;
		usleep(10000);
	}
	return 0;
}

int main(int count, char **words)
{
	program = words[0];
	if (count > 2 && !strcmp(words[1], "-")) {
		if (!strcmp(words[2], "sleep"))
			pause();
		programs();
		return 0;
	}
	int done = 0;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct kind *kind = &kinds[i];
		int wanted = count == 1;
		for (int word = 1; word < count; word++)
			wanted |= !strcmp(words[word], kind->name);
		if (!wanted)
			continue;
		mkdir("/tmp/exhaust", 0700);
		fflush(NULL);
		pid_t maker = fork();
		if (maker == 0) {
			setpgid(0, 0);
			make(kind);
		}
		setpgid(maker, maker);
		waitpid(maker, NULL, 0);
		/* Those that it has left behind come here. */
		kill(-maker, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
		clean();
		if (!works_soon())
			printf("%s: nothing works afterwards: %s\n", kind->name, strerror(errno));
		done++;
	}
	printf("%d kinds, all refused\n", done);
	return 0;
}
