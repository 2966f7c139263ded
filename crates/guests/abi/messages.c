/* Queues of messages (System V). */
#include "abi.h"
#include <limits.h>
#include <sys/ipc.h>
#include <sys/msg.h>

/* Names that not all libraries have. */
#ifndef MSG_EXCEPT
#define MSG_EXCEPT 020000
#endif
#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

enum { LONGEST = 8192, ROOM = 16384 };

static int queue;

static struct message {
	long type;
	char text[LONGEST + 1];
} message;

static int put(long type, const char *text, int flags)
{
	message.type = type;
	strcpy(message.text, text);
	return msgsnd(queue, &message, strlen(text), flags);
}

/* Receives, and says what. */
static void get(const char *what, long type, size_t most, int flags)
{
	memset(&message, 0, sizeof message);
	ssize_t length = msgrcv(queue, &message, most, type, flags);
	if (length < 0)
		tell(what, -1);
	else
		say("%s: %zd bytes of type %ld: %s", what, length, message.type, message.text);
}

static struct msqid_ds told(void)
{
	struct msqid_ds it;
	need(msgctl(queue, IPC_STAT, &it) == 0, "stat");
	return it;
}

static int give_room(unsigned long bytes)
{
	struct msqid_ds it = told();
	it.msg_qbytes = bytes;
	it.msg_perm.mode = 0640;
	return msgctl(queue, IPC_SET, &it);
}

static void several(void)
{
	put(3, "three", 0);
	put(2, "two", 0);
	put(1, "one", 0);
	put(3, "again three", 0);
	put(1, "again one", 0);
}

/* A copy leaves the message, and is never cut. */
static void copying(void)
{
	put(4, "first", 0);
	put(5, "second", 0);
	get("a copy", 0, 100, MSG_COPY | IPC_NOWAIT);
	get("a copy of the second", 1, 6, MSG_COPY | IPC_NOWAIT);
	get("a copy of a third", 2, 100, MSG_COPY | IPC_NOWAIT);
	get("a copy into too few bytes", 0, 3, MSG_COPY | IPC_NOWAIT);
	get("a part of a copy", 0, 3, MSG_COPY | MSG_NOERROR | IPC_NOWAIT);
	get("a copy, whole, that might be cut", 0, 5, MSG_COPY | MSG_NOERROR | IPC_NOWAIT);
	get("the first", 0, 100, 0);
	get("the second", 0, 100, 0);
}

static void choosing(void)
{
	several();
	get("of a type", 3, 100, 0);
	get("the lowest", -2, 100, 0);
	get("another than", 1, 100, MSG_EXCEPT);
	get("any", 0, 100, MSG_EXCEPT);
	get("of a type that no message has", 5, 100, IPC_NOWAIT);
	get("another than the only type", 1, 100, IPC_NOWAIT | MSG_EXCEPT);
	get("the lowest of all", LONG_MIN, 100, IPC_NOWAIT);
	put(6, "six", 0);
	get("lower than all", -5, 100, IPC_NOWAIT);
	get("exactly the lowest", -6, 100, IPC_NOWAIT);
	get("none", 0, 100, IPC_NOWAIT);
	put(7, "too long", 0);
	get("into too few bytes", 0, 3, 0);
	get("a part", 0, 3, MSG_NOERROR);
	get("the rest has gone", 0, 100, IPC_NOWAIT);
	put(9, "", 0);
	get("empty", 0, 0, 0);
	say("copies: %s", msgrcv(queue, &message, 9, 0, MSG_COPY) == -1 ? strerror(errno) : "ok");
	tell("copies of others", msgrcv(queue, &message, 9, 0, MSG_COPY | MSG_EXCEPT | IPC_NOWAIT));
	copying();
}

static void refused(void)
{
	tell("type 0", put(0, "x", 0));
	tell("type -1", put(-1, "x", 0));
	message.type = 1;
	tell("longest", msgsnd(queue, &message, LONGEST, 0));
	say("received: %zd", msgrcv(queue, &message, LONGEST, 0, 0));
	tell("too long", msgsnd(queue, &message, LONGEST + 1, 0));
	tell("negative", msgsnd(queue, &message, -1, 0));
	tell("receive a negative length", msgrcv(queue, &message, -1, 0, 0));
	tell("no such queue", msgsnd(queue + 77777, &message, 1, 0));
	tell("a negative queue", msgrcv(-1, &message, 1, 0, IPC_NOWAIT));
	tell("from nowhere", msgsnd(queue, nowhere, 1, 0));
	put(5, "lost", 0);
	tell("to nowhere", msgrcv(queue, nowhere, 10, 0, 0));
	say("left: %lu", (unsigned long)told().msg_qnum);
	tell("no command", msgctl(queue, 99, NULL));
	tell("told nowhere", msgctl(queue, IPC_STAT, (void *)nowhere));
}

static void full(void)
{
	struct msqid_ds it = told();
	say("room: %lu", (unsigned long)it.msg_qbytes);
	tell("less room", give_room(10));
	it = told();
	say("room: %lu, mode %o", (unsigned long)it.msg_qbytes, it.msg_perm.mode);
	tell("ten bytes", put(1, "0123456789", IPC_NOWAIT));
	tell("one more", put(1, "x", IPC_NOWAIT));
	tell("none fits", put(1, "", IPC_NOWAIT));
	get("ten bytes", 0, 100, 0);
	int count = 0;
	while (put(1, "", IPC_NOWAIT) == 0)
		count++;
	say("empty ones: %d, then %s", count, strerror(errno));
	it = told();
	say("%lu messages", (unsigned long)it.msg_qnum);
	while (msgrcv(queue, &message, 0, 0, IPC_NOWAIT) == 0)
		count--;
	say("left: %d", count);
	need(give_room(ROOM) == 0, "room");
}

static int receive_one(void)
{
	ssize_t length = msgrcv(queue, &message, 100, 4, 0);
	return length >= 0 ? (int)length : 100 + errno;
}

static int send_one(void)
{
	return put(6, "0123456", 0) == 0 ? 0 : errno;
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
	return msgrcv(queue, &message, 100, 4, 0) == -1 && errno == EINTR;
}

static int sleeps(pid_t process)
{
	char path[32], text[256];
	snprintf(path, sizeof path, "/proc/%d/stat", process);
	int file = open(path, O_RDONLY);
	ssize_t length = read(file, text, sizeof text - 1);
	text[length < 0 ? 0 : length] = 0;
	close(file);
	return strstr(text, ") S ") != NULL;
}

/* A child that cannot go on yet. */
static pid_t waiting(const char *what, int (*body)(void))
{
	pid_t child = spawn(body);
	for (int i = 0; i < 2000 && !sleeps(child); i++)
		usleep(1000);
	say("%s: %d", what, sleeps(child));
	return child;
}

static void waits(void)
{
	pid_t child = waiting("waits for a message", receive_one);
	put(5, "of another type", 0);
	say("still waits: %d", waitpid(child, NULL, WNOHANG));
	put(4, "four", 0);
	reap("received", child);
	struct msqid_ds it = told();
	say("sent by me: %d, received by the child: %d", it.msg_lspid == getpid(), it.msg_lrpid == child);
	get("the other", 0, 100, 0);
	need(give_room(10) == 0, "less room");
	put(1, "01234", 0);
	child = waiting("waits for room", send_one);
	get("the first", 0, 100, 0);
	reap("sent", child);
	get("the second", 0, 100, 0);
	/* More room, too, lets a sender go on. */
	put(1, "01234", 0);
	child = waiting("waits for more room", send_one);
	tell("more room", give_room(ROOM));
	reap("sent", child);
	get("the first", 0, 100, 0);
	get("the second", 0, 100, 0);
	reap("interrupted", spawn(interrupted));
}

/* Answers each message by one of another type, in the same order. */
static int answer(void)
{
	for (int i = 0; i < 500; i++) {
		ssize_t length = msgrcv(queue, &message, 100, 1, 0);
		message.type = 2;
		if (length < 0 || msgsnd(queue, &message, length, 0) < 0)
			return 1;
	}
	return 0;
}

static void turns(void)
{
	pid_t child = spawn(answer);
	char text[16];
	int wrong = 0;
	for (int i = 0; i < 500; i++) {
		snprintf(text, sizeof text, "%d", i);
		need(put(1, text, 0) == 0 && msgrcv(queue, &message, 100, 2, 0) == (ssize_t)strlen(text), "an answer");
		wrong += strncmp(message.text, text, strlen(text)) != 0;
	}
	reap("turns", child);
	say("wrong answers: %d", wrong);
}

/* Several children take what one process sends; together they get all of it, once. */
static int sum_up(void)
{
	int sum = 0;
	while (msgrcv(queue, &message, 100, -2, 0) > 0 && message.type == 1)
		sum += message.text[0];
	return sum;
}

static void sharing(void)
{
	pid_t children[3];
	int sum = 0, status;
	for (int i = 0; i < 3; i++)
		children[i] = spawn(sum_up);
	for (int i = 0; i < 60; i++)
		put(1, "\1", 0);
	for (int i = 0; i < 3; i++)
		put(2, "end", 0);
	for (int i = 0; i < 3; i++) {
		waitpid(children[i], &status, 0);
		sum += WEXITSTATUS(status);
	}
	say("shared: %d", sum);
}

static void removing(void)
{
	pid_t receiver = waiting("a receiver", receive_one), sender;
	need(give_room(5) == 0, "less room");
	sender = waiting("a sender", send_one);
	tell("remove", msgctl(queue, IPC_RMID, NULL));
	int status;
	waitpid(receiver, &status, 0);
	say("the receiver: %s", strerror(WEXITSTATUS(status) - 100));
	waitpid(sender, &status, 0);
	say("the sender: %s", strerror(WEXITSTATUS(status)));
	tell("removed", put(1, "x", 0));
	tell("remove again", msgctl(queue, IPC_RMID, NULL));
}

int main(void)
{
	key_t key = 0x6e550000 + getpid();
	tell("no such key", msgget(key, 0600));
	queue = msgget(key, IPC_CREAT | IPC_EXCL | 0600);
	need(queue >= 0, "msgget");
	tell("there already", msgget(key, IPC_CREAT | IPC_EXCL | 0600));
	say("the same: %d", msgget(key, 0) == queue);
	struct msqid_ds it = told();
	say("new: mode %o, %lu messages, sent %d, received %d", it.msg_perm.mode, (unsigned long)it.msg_qnum,
	    it.msg_stime != 0, it.msg_rtime != 0);
	choosing();
	it = told();
	say("used: sent %d, received %d, by me %d", it.msg_stime != 0, it.msg_rtime != 0, it.msg_lspid == getpid());
	refused();
	full();
	waits();
	turns();
	sharing();
	removing();
	int one = msgget(IPC_PRIVATE, 0600), other = msgget(IPC_PRIVATE, 0600);
	say("private ones differ: %d", one >= 0 && other >= 0 && one != other);
	msgctl(one, IPC_RMID, NULL);
	msgctl(other, IPC_RMID, NULL);
	return 0;
}
