// Does known things to its memory: the first argument says which. What is of interest comes after a
// mapping of MARK bytes.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MARK = 77 * PAGE };

static char *map(size_t pages) {
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		exit(10);
	return p;
}

static void check(int ok) {
	if (!ok)
		exit(11);
}

static void touch(volatile char *p, size_t pages) {
	for (size_t i = 0; i < pages; i++)
		p[i * PAGE] = 1;
}

// Returns when the thread `tid` of the process `pid` sleeps. It says so before it leaves its CPU.
static void until_asleep(pid_t pid, volatile pid_t *tid) {
	char path[64], state = 'R';
	while (*tid == 0)
		usleep(1000);
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, *tid);
	while (state != 'S') {
		usleep(1000);
		FILE *file = fopen(path, "r");
		check(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
		fclose(file);
	}
	usleep(2000);
}

static int rounds;
static volatile pid_t other_thread;

static void *rounds_of_a_thread(void *unused) {
	for (int i = 0; i < rounds; i++) {
		char *p = map(16);
		touch(p, 16);
		check(munmap(p, 16 * PAGE) == 0);
	}
	return unused;
}

static void threads(int count) {
	pthread_t *all = calloc(count, sizeof *all);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < count; i++)
		check(pthread_create(&all[i], &small, rounds_of_a_thread, NULL) == 0);
	for (int i = 0; i < count; i++)
		pthread_join(all[i], NULL);
}

static void copies(void) {
	char *p = map(8);
	touch(p, 8);
	pid_t child = fork();
	if (child == 0) {
		pid_t parent = getppid();
		until_asleep(parent, &parent);
		touch(p + 2 * PAGE, 3);
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child);
	touch(p, 1);
}

static void heap(void) {
	char *p = sbrk(4 * PAGE);
	touch(p, 4);
	check(sbrk(-3 * PAGE) != (void *)-1);
}

static void moves(void) {
	char *p = map(12);
	// A mapping right behind the part that grows.
	check(mprotect(p + 4 * PAGE, 8 * PAGE, PROT_READ) == 0);
	touch(p, 2);
	char *q = mremap(p, 4 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	check(q != MAP_FAILED && q != p);
	touch(q, 6);
	check(mremap(q, 6 * PAGE, 3 * PAGE, 0) == q);
	check(munmap(q, 3 * PAGE) == 0);
}

static void parts(void) {
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	char *p = map(10);
	check(mmap(p + 4 * PAGE, 4 * PAGE, PROT_NONE, flags, -1, 0) == p + 4 * PAGE);
	check(mprotect(p + 2 * PAGE, 7 * PAGE, PROT_READ | PROT_WRITE) == 0);
	touch(p + 3 * PAGE, 6);
	check(madvise(p + 5 * PAGE, PAGE, MADV_DONTNEED) == 0);
	check(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	check(munmap(p, 10 * PAGE) == 0);
}

static volatile int handled;

static void handles(int signal) {
	(void)signal;
	char *p = map(3);
	touch(p, 1);
	check(munmap(p, 3 * PAGE) == 0);
	handled++;
}

// Its calls, faults and sleeps are interrupted. The last mapping tells how often.
static void is_interrupted(void) {
	struct sigaction action = {.sa_handler = handles, .sa_flags = SA_RESTART};
	struct itimerval often = {.it_interval.tv_usec = 300, .it_value.tv_usec = 300}, never = {0};
	check(sigaction(SIGALRM, &action, NULL) == 0);
	check(setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (int i = 0; i < rounds; i++) {
		rounds_of_a_thread(NULL);
		usleep(500);
	}
	check(setitimer(ITIMER_REAL, &never, NULL) == 0);
	map(1000 + handled);
}

static int there[2], back[2];

static void *answers(void *unused) {
	char byte;
	other_thread = gettid();
	for (int i = 0; i < rounds; i++)
		check(read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1);
	return unused;
}

static void pipes(void) {
	pthread_t other;
	char byte = 1;
	check(pipe(there) == 0 && pipe(back) == 0);
	pthread_create(&other, NULL, answers, NULL);
	for (int i = 0; i < rounds; i++) {
		until_asleep(getpid(), &other_thread);
		check(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
	}
	pthread_join(other, NULL);
}

static void sockets(void) {
	pthread_t other;
	char byte = 1;
	struct sockaddr_in place = {.sin_family = AF_INET};
	socklen_t length = sizeof place;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(bind(listener, (struct sockaddr *)&place, length) == 0);
	check(listen(listener, 1) == 0);
	check(getsockname(listener, (struct sockaddr *)&place, &length) == 0);
	int near = socket(AF_INET, SOCK_STREAM, 0);
	check(connect(near, (struct sockaddr *)&place, length) == 0);
	int far = accept(listener, NULL, NULL);
	check(far >= 0);
	there[0] = back[1] = far;
	pthread_create(&other, NULL, answers, NULL);
	for (int i = 0; i < rounds; i++) {
		until_asleep(getpid(), &other_thread);
		check(write(near, &byte, 1) == 1 && read(near, &byte, 1) == 1);
	}
	pthread_join(other, NULL);
}

static void computes(void) {
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	long end = used.tv_sec * 1000 + used.tv_nsec / 1000000 + 30;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < end);
	usleep(50000);
	map(3);
}

static void *never_ends(void *unused) {
	for (;;)
		rounds_of_a_thread(unused);
}

static void ends(void) {
	pthread_t other;
	pthread_create(&other, NULL, never_ends, NULL);
	usleep(20000);
	exit(0);
}

// Is attached to while it waits for a byte, with a thread that waits for it.
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *unused) {
	other_thread = gettid();
	pthread_mutex_lock(&gate);
	rounds_of_a_thread(unused);
	return unused;
}

static void is_attached_to(void) {
	pthread_t other;
	char byte;
	char *p = map(21);
	touch(p, 5);
	pthread_mutex_lock(&gate);
	pthread_create(&other, NULL, waits, NULL);
	until_asleep(getpid(), &other_thread);
	check(write(1, "!", 1) == 1 && read(0, &byte, 1) == 1);
	touch(p + 5 * PAGE, 2);
	check(munmap(p, 21 * PAGE) == 0);
	pthread_mutex_unlock(&gate);
	pthread_join(other, NULL);
}

// Says twice that it is ready, and waits to be told to go on.
static void is_monitored(void) {
	char byte;
	check(write(1, "!", 1) == 1 && read(0, &byte, 1) == 1);
	touch(map(300), 300);
	check(write(1, "!", 1) == 1 && read(0, &byte, 1) == 1);
}

int main(int count, char **words) {
	const char *what = words[1];
	rounds = count > 3 ? atoi(words[3]) : 1;
	map(MARK / PAGE);
	if (strcmp(what, "threads") == 0)
		threads(atoi(words[2]));
	else if (strcmp(what, "copies") == 0)
		copies();
	else if (strcmp(what, "heap") == 0)
		heap();
	else if (strcmp(what, "moves") == 0)
		moves();
	else if (strcmp(what, "parts") == 0)
		parts();
	else if (strcmp(what, "pipes") == 0)
		pipes();
	else if (strcmp(what, "sockets") == 0)
		sockets();
	else if (strcmp(what, "computes") == 0)
		computes();
	else if (strcmp(what, "ends") == 0)
		ends();
	else if (strcmp(what, "interrupted") == 0)
		is_interrupted();
	else if (strcmp(what, "monitored") == 0)
		is_monitored();
	else if (strcmp(what, "attached") == 0)
		is_attached_to();
	else if (strcmp(what, "executes") == 0)
		execl(words[0], words[0], "parts", NULL);
	return 0;
}
