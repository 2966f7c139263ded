/* Sets of semaphores (System V). */
#include "abi.h"
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>

static int set;

static int op(int index, int change, int flags)
{
	struct sembuf one = { index, change, flags };
	return semop(set, &one, 1);
}

static int value(int index)
{
	return semctl(set, index, GETVAL);
}

/* Waits until a thread waits at a semaphore, for more or for 0. */
static void until_waiting(int index, int command)
{
	for (int i = 0; i < 2000 && semctl(set, index, command) == 0; i++)
		usleep(1000);
}

static int take_one(void)
{
	return op(0, -1, 0) == 0 ? 0 : errno;
}

static int wait_for_zero(void)
{
	return op(1, 0, 0) == 0 ? 0 : errno;
}

static int leave_undone(void)
{
	op(0, 5, SEM_UNDO);
	op(0, -2, SEM_UNDO);
	op(1, 1, 0);
	return value(0);
}

static int of_none(void)
{
	set = semget(0x5e3a, 0, 0);
	return value(0) == 3 ? 7 : 8;
}

static void nothing(int signal)
{
	(void)signal;
}

static int interrupted(void)
{
	struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	return op(0, -100, 0) == 0 ? 0 : errno == EINTR ? 1 : 2;
}

static void values(void)
{
	tell("one", op(0, 3, 0));
	say("value %d, by me: %d", value(0), semctl(set, 0, GETPID) == getpid());
	tell("two more", op(0, -2, 0));
	tell("not now", op(0, -2, IPC_NOWAIT));
	tell("zero", op(1, 0, 0));
	tell("not zero", op(0, 0, IPC_NOWAIT));
	tell("none such", op(4, 1, 0));
	tell("too large", op(0, 32767, 0));
	struct sembuf several[3] = { { 0, 4, 0 }, { 1, 2, 0 }, { 2, -1, IPC_NOWAIT } };
	tell("all or none", semop(set, several, 3));
	say("none: %d %d %d", value(0), value(1), value(2));
	several[2].sem_op = 1;
	tell("all", semop(set, several, 3));
	unsigned short all[4], wanted[4] = { 1, 0, 9, 32767 };
	tell("get all", semctl(set, 0, GETALL, all));
	say("all: %u %u %u %u", all[0], all[1], all[2], all[3]);
	tell("set all", semctl(set, 0, SETALL, wanted));
	say("set: %d %d %d %d", value(0), value(1), value(2), value(3));
	tell("set one", semctl(set, 0, SETVAL, 3));
	tell("set too large", semctl(set, 0, SETVAL, 32768));
	tell("no such", semctl(set, 4, GETVAL));
	tell("no command", semctl(set, 0, 99));
	tell("no operations", semop(set, several, 0));
	tell("too many", semop(set, several, 501));
	tell("nowhere", semop(set, (struct sembuf *)nowhere, 1));
}

static void waits(void)
{
	semctl(set, 0, SETVAL, 0);
	semctl(set, 1, SETVAL, 1);
	pid_t taker = spawn(take_one), zero = spawn(wait_for_zero);
	until_waiting(0, GETNCNT);
	until_waiting(1, GETZCNT);
	say("waiting: %d %d", semctl(set, 0, GETNCNT), semctl(set, 1, GETZCNT));
	op(0, 1, 0);
	reap("taken", taker);
	op(1, -1, 0);
	reap("zero", zero);
	say("left: %d %d, waiting: %d %d", value(0), value(1), semctl(set, 0, GETNCNT), semctl(set, 1, GETZCNT));
	struct timespec limit = { 0, 20000000 };
	struct sembuf one = { 0, -1, 0 };
	tell("time is up", semtimedop(set, &one, 1, &limit));
	limit.tv_nsec = -1;
	tell("no time", semtimedop(set, &one, 1, &limit));
	reap("interrupted", spawn(interrupted));
	/* Two processes take turns. */
	semctl(set, 1, SETVAL, 0);
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < 300; i++)
			if (op(0, -1, 0) < 0 || op(1, 1, 0) < 0)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < 300; i++)
		need(op(0, 1, 0) == 0 && op(1, -1, 0) == 0, "semop");
	reap("turns", child);
}

static void undone(void)
{
	semctl(set, 0, SETVAL, 2);
	semctl(set, 1, SETVAL, 0);
	reap("child", spawn(leave_undone));
	say("undone: %d, not undone: %d", value(0), value(1));
	/* What waits learns of it. */
	semctl(set, 0, SETVAL, 0);
	pid_t taker = spawn(take_one), child = fork();
	if (child == 0) {
		semctl(set, 2, SETVAL, 1);
		op(2, -1, SEM_UNDO);
		op(0, -1, 0);
		_exit(0);
	}
	while (semctl(set, 0, GETNCNT) < 2)
		usleep(1000);
	op(2, 0, 0);
	say("taken by the child: %d", value(2));
	kill(child, SIGKILL);
	reap("killed", child);
	say("given back: %d, waiting: %d", value(2), semctl(set, 0, GETNCNT));
	op(0, 1, 0);
	reap("taken", taker);
}

int main(void)
{
	set = semget(0x5e3a, 4, IPC_CREAT | IPC_EXCL | 0600);
	need(set >= 0, "semget");
	tell("again", semget(0x5e3a, 4, IPC_CREAT | IPC_EXCL | 0600));
	say("found: %d", semget(0x5e3a, 0, 0) == set);
	tell("too few", semget(0x5e3a, 5, 0));
	tell("not there", semget(0x5e3b, 1, 0));
	tell("empty", semget(0x5e3b, 0, IPC_CREAT | 0600));
	tell("negative", semget(0x5e3b, -1, IPC_CREAT | 0600));
	tell("more than fit", semget(0x5e3b, 32001, IPC_CREAT | 0600));
	struct semid_ds told;
	tell("stat", semctl(set, 0, IPC_STAT, &told));
	say("key %#x, mode %o, count %lu, used: %d", told.sem_perm.__key, told.sem_perm.mode, told.sem_nsems,
	    told.sem_otime != 0);
	values();
	semctl(set, 0, IPC_STAT, &told);
	say("used: %d", told.sem_otime != 0);
	told.sem_perm.mode = 0644;
	tell("change", semctl(set, 0, IPC_SET, &told));
	semctl(set, 0, IPC_STAT, &told);
	say("mode %o", told.sem_perm.mode);
	waits();
	semctl(set, 0, SETVAL, 3);
	reap("found by a child", spawn(of_none));
	undone();
	pid_t taker = spawn(take_one);
	until_waiting(0, GETNCNT);
	tell("remove", semctl(set, 0, IPC_RMID));
	int status;
	waitpid(taker, &status, 0);
	say("the waiter: %s", strerror(WEXITSTATUS(status)));
	tell("removed", op(0, 1, 0));
	tell("again", semctl(set, 0, IPC_RMID));
	int own = semget(IPC_PRIVATE, 1, 0600), other = semget(IPC_PRIVATE, 1, 0600);
	say("private: %d", own >= 0 && other >= 0 && own != other);
	semctl(own, 0, IPC_RMID);
	semctl(other, 0, IPC_RMID);
	return 0;
}
