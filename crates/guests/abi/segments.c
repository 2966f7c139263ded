/* Segments of shared memory (System V). */
#include "abi.h"
#include <sys/ipc.h>
#include <sys/shm.h>

static int id;
static char *at;

static void show(const char *what)
{
	struct shmid_ds data;
	if (shmctl(id, IPC_STAT, &data) < 0) {
		tell(what, -1);
		return;
	}
	say("%s: %ld bytes, mode %o, attached %ld times, made here %d", what, (long)data.shm_segsz, data.shm_perm.mode,
	    (long)data.shm_nattch, data.shm_cpid == getpid());
}

static int child(void)
{
	at[1] = 'c';
	char *again = shmat(id, NULL, SHM_RDONLY);
	int good = again != (char *)-1 && again != at && again[1] == 'c';
	say("rights: %s", mprotect(again, PAGE, PROT_READ | PROT_WRITE) == -1 ? strerror(errno) : "ok");
	show("in the child");
	return good && shmdt(again) == 0;
}

static int store_where_only_read(void)
{
	char *read_only = shmat(id, NULL, SHM_RDONLY);
	read_only[0] = 1;
	return 0;
}

int main(void)
{
	key_t key = 0x5ca1e000 + getpid();
	tell("no such key", shmget(key, PAGE, 0));
	tell("no size", shmget(key, 0, IPC_CREAT | 0600));
	id = shmget(key, PAGE + 1, IPC_CREAT | IPC_EXCL | 0640);
	need(id >= 0, "shmget");
	tell("there already", shmget(key, PAGE, IPC_CREAT | IPC_EXCL | 0600));
	tell("too large", shmget(key, 3 * PAGE, 0));
	say("the same: %d", shmget(key, PAGE, 0) == id);
	show("new");
	at = shmat(id, NULL, 0);
	need(at != (char *)-1, "shmat");
	say("zeroes: %d", all(at, 2 * PAGE, 0));
	at[0] = 'p';
	char *twice = shmat(id, NULL, 0);
	say("twice: %d", twice != at && twice[0] == 'p');
	show("attached");
	reap("child", spawn(child));
	say("what it stored: %c", twice[1]);
	show("after it");
	reap("store where it is only read", spawn(store_where_only_read));
	tell("detach", shmdt(twice));
	tell("detach again", shmdt(twice));
	show("once");
	tell("at an address", shmat(id, twice, 0) == twice ? 0 : -1);
	tell("at one that is taken", shmat(id, twice, 0) == (void *)-1 ? -1 : 0);
	tell("in its place", shmat(id, twice, SHM_REMAP) == twice ? 0 : -1);
	tell("crooked", shmat(id, twice + 5, 0) == (void *)-1 ? -1 : 0);
	tell("rounded", shmat(id, twice + 5, SHM_RND | SHM_REMAP) == twice ? 0 : -1);
	show("in its place");
	need(munmap(twice, PAGE) == 0, "munmap");
	say("the rest: %c", twice[PAGE] ? 'x' : '0');
	tell("detach the rest", shmdt(twice));
	show("again once");
	struct shmid_ds data;
	need(shmctl(id, IPC_STAT, &data) == 0, "stat");
	data.shm_perm.mode = 0600;
	tell("set", shmctl(id, IPC_SET, &data));
	show("set");
	tell("no such command", shmctl(id, 99, NULL));
	tell("no such segment", shmctl(id + 77777, IPC_STAT, &data));
	tell("bad address", syscall(31, id, IPC_STAT, nowhere));
	tell("remove", shmctl(id, IPC_RMID, NULL));
	tell("key is free", shmget(key, PAGE, 0));
	show("removed");
	say("still there: %c", at[0]);
	tell("detach", shmdt(at));
	show("gone");
	int private = shmget(IPC_PRIVATE, PAGE, 0600), other = shmget(IPC_PRIVATE, PAGE, 0600);
	say("private ones differ: %d", private != other);
	shmctl(private, IPC_RMID, NULL);
	shmctl(other, IPC_RMID, NULL);
	tell("never attached", shmctl(private, IPC_STAT, &data));
	return 0;
}
