/* What is told of all System V objects: limits, how many there are, and each by its place, as `ipcs` asks. */
#include "abi.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

/* Names that not all libraries have. */
enum { INFO = 3, OF_MESSAGES = 11, OF_SEMAPHORES = 18, OF_SEGMENTS = 13 };

/* Places up to `last` at which the object `wanted` is; `stat` returns a place's number. */
static int found(int last, int wanted, int (*stat)(int place))
{
	int count = 0;
	for (int place = 0; place <= last; place++)
		count += stat(place) == wanted;
	return count;
}

static int message_at(int place)
{
	struct msqid_ds told;
	return msgctl(place, OF_MESSAGES, &told);
}

static int semaphore_at(int place)
{
	struct semid_ds told;
	return semctl(place, 0, OF_SEMAPHORES, &told);
}

static int segment_at(int place)
{
	struct shmid_ds told;
	return shmctl(place, OF_SEGMENTS, &told);
}

static void messages(void)
{
	/* `struct msginfo`. */
	int told[8];
	int queue = msgget(IPC_PRIVATE, 0600);
	struct { long type; char text[5]; } message = { 1, "text" };
	need(queue >= 0 && msgsnd(queue, &message, 5, 0) == 0, "msgsnd");
	int last = msgctl(queue, INFO, (void *)told);
	say("messages: longest %d, room %d", told[2], told[3]);
	say("found: %d", found(last, queue, message_at));
	last = msgctl(0, OF_MESSAGES + 1, (void *)told);
	say("there are: %d, with messages: %d, of bytes: %d", told[0] >= 1, told[1] >= 1, told[6] >= 5);
	say("found: %d", found(last, queue, message_at));
	tell("nowhere", msgctl(0, INFO, (void *)nowhere));
	msgctl(queue, IPC_RMID, NULL);
	say("removed: %d", found(last, queue, message_at));
	tell("beyond", message_at(last + 1000));
}

static void semaphores(void)
{
	/* `struct seminfo`. */
	int told[10];
	int set = semget(IPC_PRIVATE, 3, 0600);
	need(set >= 0, "semget");
	int last = semctl(0, 0, INFO, told);
	say("semaphores: operations %d, largest %d", told[5], told[8]);
	say("found: %d", found(last, set, semaphore_at));
	last = semctl(0, 0, OF_SEMAPHORES + 1, told);
	say("there are: %d, semaphores: %d", told[7] >= 1, told[9] >= 3);
	semctl(set, 0, IPC_RMID);
	say("removed: %d", found(last, set, semaphore_at));
	tell("negative", semaphore_at(-1));
}

static void segments(void)
{
	/* `struct shminfo` and `struct shm_info`. */
	unsigned long told[9];
	int segment = shmget(IPC_PRIVATE, 3 * PAGE, 0600);
	need(segment >= 0, "shmget");
	int last = shmctl(0, INFO, (void *)told);
	say("segments: smallest %lu, at most %lu", told[1], told[2]);
	say("found: %d", found(last, segment, segment_at));
	last = shmctl(0, OF_SEGMENTS + 1, (void *)told);
	say("there are: %d, pages: %d", (int)told[0] >= 1, told[1] >= 3);
	shmctl(segment, IPC_RMID, NULL);
	say("removed: %d", found(last, segment, segment_at));
}

int main(void)
{
	messages();
	semaphores();
	segments();
	return 0;
}
