/* Bytes that move between pipes and other files. */
#include "abi.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int one[2], other[2];

static void moved(const char *what, ssize_t count)
{
	if (count < 0)
		tell(what, count);
	else
		say("%s: %d", what, (int)count);
}

static void get(const char *what, int fd)
{
	char text[100] = "";
	moved(what, read(fd, text, sizeof text - 1));
	say("'%s'", text);
}

static void put(int fd, const char *text)
{
	need(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "write");
}

static void *puts_late(void *unused)
{
	(void)unused;
	usleep(20000);
	put(one[1], "late");
	return NULL;
}

int main(void)
{
	pthread_t thread;
	char text[100] = "";
	static char big[200000];
	enter_folder();
	signal(SIGPIPE, SIG_IGN);
	need(pipe(one) == 0 && pipe(other) == 0, "pipe");
	int file = open("file", O_CREAT | O_RDWR, 0600), pair[2];
	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	put(file, "the content of a file");
	off_t at = 4;
	moved("from a file", splice(file, &at, one[1], NULL, 7, 0));
	say("then at %d, its own at %d", (int)at, (int)lseek(file, 0, SEEK_CUR));
	moved("from a pipe", splice(one[0], NULL, other[1], NULL, 100, 0));
	moved("to a socket", splice(other[0], NULL, pair[0], NULL, 100, SPLICE_F_MOVE | SPLICE_F_MORE));
	get("it", pair[1]);
	put(pair[1], "back");
	moved("from a socket", splice(pair[0], NULL, one[1], NULL, 100, 0));
	at = 100;
	moved("to a file", splice(one[0], NULL, file, &at, 100, 0));
	say("then at %d, the file has %d", (int)at, (int)lseek(file, 0, SEEK_END));
	moved("at the end", splice(file, NULL, one[1], NULL, 100, 0));
	lseek(file, 0, SEEK_SET);
	moved("from its own offset", splice(file, NULL, one[1], NULL, 3, 0));
	say("then at %d", (int)lseek(file, 0, SEEK_CUR));
	moved("tee", tee(one[0], other[1], 100, 0));
	get("the copy", other[0]);
	get("the bytes", one[0]);
	moved("none", splice(one[0], NULL, other[1], NULL, 10, SPLICE_F_NONBLOCK));
	moved("none to tee", tee(one[0], other[1], 10, SPLICE_F_NONBLOCK));
	moved("none wanted", splice(one[0], NULL, other[1], NULL, 0, 0));
	moved("no pipe", splice(file, NULL, pair[0], NULL, 10, 0));
	moved("the same", splice(one[0], NULL, one[1], NULL, 10, 0));
	moved("an offset of a pipe", splice(one[0], &at, other[1], NULL, 10, 0));
	moved("wrong ends", splice(one[1], NULL, other[1], NULL, 10, 0));
	moved("tee a file", tee(file, other[1], 10, 0));
	moved("no such flags", splice(one[0], NULL, other[1], NULL, 10, 0x100));
	moved("offset nowhere", splice(file, (void *)nowhere, other[1], NULL, 10, 0));
	int appends = open("file", O_WRONLY | O_APPEND);
	put(one[1], "x");
	moved("to an end", splice(one[0], NULL, appends, NULL, 10, 0));
	get("still there", one[0]);
	need(pthread_create(&thread, NULL, puts_late, NULL) == 0, "pthread_create");
	moved("waits", splice(one[0], NULL, other[1], NULL, 10, 0));
	pthread_join(thread, NULL);
	get("it", other[0]);
	struct iovec parts[2] = { { "of ", 3 }, { "memory", 6 } };
	moved("vmsplice", vmsplice(one[1], parts, 2, SPLICE_F_GIFT));
	parts[0] = (struct iovec){ text, sizeof text };
	moved("back", vmsplice(one[0], parts, 1, 0));
	say("'%s'", text);
	moved("no pipe", vmsplice(file, parts, 1, 0));
	moved("none", vmsplice(one[0], parts, 1, SPLICE_F_NONBLOCK));
	int large = open("large", O_CREAT | O_RDWR, 0600);
	need(write(large, big, sizeof big) == sizeof big, "write");
	at = 0;
	moved("until it is full", splice(large, &at, one[1], NULL, sizeof big, SPLICE_F_NONBLOCK));
	moved("full", splice(large, &at, one[1], NULL, 10, SPLICE_F_NONBLOCK));
	moved("all", splice(one[0], NULL, open("/dev/null", O_WRONLY), NULL, sizeof big, 0));
	close(other[0]);
	put(one[1], "x");
	moved("nobody reads", splice(one[0], NULL, other[1], NULL, 10, 0));
	close(one[1]);
	while (read(one[0], text, sizeof text) > 0)
		;
	moved("the end", splice(one[0], NULL, pair[0], NULL, 10, 0));
	return 0;
}
