/* What is given to a waiter is the waiter's: whoever comes later does not take it. */
#include "abi.h"
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

enum { ROUNDS = 300, WAKE_OP = 5, ADD_ONE = 1 << 28 | 1 << 12 };

struct message {
	long type;
	char text[16];
};

static int set, queue;
/* How many messages a child has received. */
static volatile int *received;

static int change(int by, int flags)
{
	struct sembuf operation = { 0, by, flags };
	return semop(set, &operation, 1);
}

static int takes_semaphores(void)
{
	for (int i = 0; i < ROUNDS; i++)
		need(change(-1, 0) == 0, "semop");
	return 0;
}

static void semaphores(void)
{
	set = semget(IPC_PRIVATE, 1, 0600);
	need(set >= 0, "semget");
	pid_t child = spawn(takes_semaphores);
	int stolen = 0;
	for (int i = 0; i < ROUNDS; i++) {
		while (semctl(set, 0, GETNCNT) == 0)
			usleep(100);
		need(change(1, 0) == 0, "semop");
		stolen += change(-1, IPC_NOWAIT) == 0;
	}
	say("semaphores taken from a waiter: %d", stolen);
	reap("waiter", child);
	/* The first of several that wait gets it, when it is enough for that one. */
	pid_t large = fork();
	if (large == 0)
		_exit(change(-2, 0));
	while (semctl(set, 0, GETNCNT) != 1)
		usleep(100);
	pid_t small = fork();
	if (small == 0)
		_exit(change(-1, 0));
	while (semctl(set, 0, GETNCNT) != 2)
		usleep(100);
	change(1, 0);
	reap("the smaller one", small);
	say("waiting: %d", semctl(set, 0, GETNCNT));
	change(2, 0);
	reap("the larger one", large);
	pid_t zero = fork();
	if (zero == 0)
		_exit(change(0, 0));
	change(1, 0);
	semctl(set, 0, SETVAL, 0);
	reap("one that waits for 0", zero);
	pid_t last = fork();
	if (last == 0)
		_exit(change(-1, 0) == -1 && errno == EIDRM ? 0 : 1);
	while (semctl(set, 0, GETNCNT) == 0)
		usleep(100);
	semctl(set, 0, IPC_RMID);
	reap("removed", last);
}

/* Waits until a process, which does nothing but wait for messages, does so. */
static void wait_until_asleep(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	while (!strstr(text, ") S ")) {
		int file = open(path, O_RDONLY);
		need(file >= 0 && read(file, text, sizeof text - 1) > 0, path);
		close(file);
	}
}

static int takes_messages(void)
{
	struct message message;
	for (int i = 0; i < ROUNDS; i++)
		need(msgrcv(queue, &message, sizeof message.text, 0, 0) >= 0 && ++*received, "msgrcv");
	return 0;
}

static void messages(void)
{
	struct message message = { 1, "text" };
	struct msqid_ds state;
	queue = msgget(IPC_PRIVATE, 0600);
	need(queue >= 0, "msgget");
	received = (int *)map(1, PROT_READ | PROT_WRITE, MAP_SHARED);
	pid_t child = spawn(takes_messages);
	int stolen = 0;
	for (int i = 0; i < ROUNDS; i++) {
		while (*received < i)
			usleep(100);
		wait_until_asleep(child);
		need(msgsnd(queue, &message, 4, 0) == 0, "msgsnd");
		stolen += msgrcv(queue, &message, sizeof message.text, 0, IPC_NOWAIT) >= 0;
	}
	say("messages taken from a waiter: %d", stolen);
	reap("receiver", child);
	/* One that the receiver has no room for is refused it, and the next one gets it. */
	pid_t narrow = fork();
	if (narrow == 0)
		_exit(msgrcv(queue, &message, 2, 0, 0) == -1 && errno == E2BIG ? 0 : 1);
	wait_until_asleep(narrow);
	pid_t other = fork();
	if (other == 0)
		_exit(msgrcv(queue, &message, 16, 7, 0) == 4 ? 0 : 1);
	wait_until_asleep(other);
	message.type = 7;
	msgsnd(queue, &message, 4, 0);
	reap("too narrow", narrow);
	reap("wide enough", other);
	msgctl(queue, IPC_STAT, &state);
	say("left: %ld", (long)state.msg_qnum);
	pid_t last = fork();
	if (last == 0)
		_exit(msgrcv(queue, &message, 16, 0, 0) == -1 && errno == EIDRM ? 0 : 1);
	wait_until_asleep(last);
	msgctl(queue, IPC_RMID, NULL);
	reap("removed", last);
}

static int words[2];

/* Adds 1 to a word by FUTEX_WAKE_OP, concurrently with another thread that does the same. */
static void *adds(void *nothing)
{
	for (int i = 0; i < 20000; i++)
		syscall(SYS_futex, &words[0], WAKE_OP, 1, 1, &words[1], ADD_ONE);
	return nothing;
}

int main(void)
{
	semaphores();
	messages();
	pthread_t id;
	need(pthread_create(&id, NULL, adds, NULL) == 0, "pthread_create");
	adds(NULL);
	pthread_join(id, NULL);
	say("added: %d", words[1]);
	return 0;
}
