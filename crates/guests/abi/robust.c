/* Locks of a thread that ends: the next one learns that the owner has died, whatever the list looks like. */
#include "abi.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

struct lock {
	struct lock *next;
	int word;
};

struct list {
	struct lock *next;
	long offset;
	struct lock *pending;
};

static struct shared {
	struct list list;
	struct lock locks[2];
	pthread_mutex_t mutex;
} *shared;

/* A child has a list and ends; the first lock's word afterwards, without the owner. */
static void ends(const char *what, struct lock *first, struct lock *second, struct lock *pending, int waits)
{
	struct lock *end = (struct lock *)&shared->list, *lock = shared->locks;
	lock[0].word = lock[1].word = 0;
	pid_t child = fork();
	if (child == 0) {
		shared->list = (struct list){ first, offsetof(struct lock, word), pending };
		lock[0].next = second ? second : end;
		lock[1].next = end;
		lock[0].word = lock[1].word = getpid() | (waits ? 0x80000000 : 0);
		syscall(SYS_set_robust_list, &shared->list, sizeof shared->list);
		if (waits)
			usleep(100000);
		_exit(0);
	}
	if (waits) {
		while (lock[0].word == 0)
			usleep(1000);
		struct timespec limit = { 5, 0 };
		long woken = syscall(SYS_futex, &lock[0].word, 0, lock[0].word, &limit, NULL, 0);
		tell("the waiter", woken);
	}
	waitpid(child, NULL, 0);
	unsigned mask = 0xc0000000;
	say("%s: %#x, %#x", what, lock[0].word & mask, lock[1].word & mask);
}

static int owner_dies(void)
{
	pthread_mutex_lock(&shared->mutex);
	kill(getpid(), SIGKILL);
	return 0;
}

static int owner_runs_another(void)
{
	struct lock *end = (struct lock *)&shared->list;
	shared->list = (struct list){ shared->locks, offsetof(struct lock, word), NULL };
	shared->locks[0] = (struct lock){ end, getpid() };
	syscall(SYS_set_robust_list, &shared->list, sizeof shared->list);
	execl("/proc/self/exe", "again", "again", NULL);
	return 1;
}

static void *thread(void *nothing)
{
	pthread_mutex_lock(&shared->mutex);
	return nothing;
}

static void mutex(void)
{
	pthread_mutexattr_t robust;
	pthread_mutexattr_init(&robust);
	pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &robust);
	reap("owner", spawn(owner_dies));
	say("its mutex: %s", strerror(pthread_mutex_lock(&shared->mutex)));
	say("consistent: %s", strerror(pthread_mutex_consistent(&shared->mutex)));
	pthread_mutex_unlock(&shared->mutex);
	pthread_t id;
	need(pthread_create(&id, NULL, thread, NULL) == 0, "pthread_create");
	pthread_join(id, NULL);
	say("of a thread: %s", strerror(pthread_mutex_lock(&shared->mutex)));
}

int main(int count, char **arguments)
{
	(void)arguments;
	if (count > 1)
		return 0;
	shared = (struct shared *)map(1, PROT_READ | PROT_WRITE, MAP_SHARED);
	struct lock *lock = shared->locks, *end = (struct lock *)&shared->list;
	ends("two locks", &lock[0], &lock[1], NULL, 0);
	ends("with a waiter", &lock[0], NULL, NULL, 1);
	ends("about to be taken", end, NULL, &lock[0], 0);
	ends("listed and pending", &lock[0], &lock[1], &lock[1], 0);
	ends("a circle", &lock[0], &lock[0], NULL, 0);
	ends("a link to nowhere", (struct lock *)nowhere, NULL, &lock[0], 0);
	ends("a link to nowhere behind it", &lock[0], (struct lock *)nowhere, &lock[1], 0);
	reap("another program", spawn(owner_runs_another));
	say("its lock: %#x", lock[0].word & 0xc0000000);
	mutex();
	return 0;
}
