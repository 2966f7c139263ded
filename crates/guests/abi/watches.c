/* Watches of files and directories (inotify). */
#include "abi.h"
#include <poll.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>

static int notices;

static void show(const char *what)
{
	char bytes[4096] __attribute__((aligned(8)));
	uint32_t cookie = 0;
	ssize_t count = read(notices, bytes, sizeof bytes);
	if (count < 0) {
		tell(what, -1);
		return;
	}
	for (char *at = bytes; at < bytes + count;) {
		struct inotify_event *event = (void *)at;
		say("%s: watch %d, %#x, '%s', %d bytes, joined %d", what, event->wd, event->mask, event->len ? event->name : "",
			(int)event->len, event->cookie != 0 && event->cookie == cookie);
		cookie = event->cookie;
		at += sizeof *event + event->len;
	}
}

static void *makes_late(void *unused)
{
	(void)unused;
	usleep(20000);
	close(open("folder/late", O_CREAT | O_WRONLY, 0600));
	return NULL;
}

int main(void)
{
	char byte = 'x', small[20];
	pthread_t thread;
	enter_folder();
	mkdir("folder", 0700);
	mkdir("other", 0700);
	close(open("folder/file", O_CREAT | O_RDWR, 0600));
	tell("no flags", inotify_init1(1));
	notices = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	need(notices >= 0, "inotify_init1");
	show("none");
	int folder = inotify_add_watch(notices, "folder", IN_ALL_EVENTS);
	say("the first: %d", folder);
	tell("no events", inotify_add_watch(notices, "folder", 0));
	tell("nothing there", inotify_add_watch(notices, "none", IN_ALL_EVENTS));
	tell("only a folder", inotify_add_watch(notices, "folder/file", IN_ONLYDIR | IN_ACCESS));
	tell("another file", inotify_add_watch(0, "folder", IN_ACCESS));
	tell("only new ones", inotify_add_watch(notices, "folder", IN_MASK_CREATE | IN_ACCESS));
	int file = open("folder/file", O_RDWR);
	need(write(file, &byte, 1) == 1, "write");
	need(write(file, &byte, 1) == 1, "write");
	lseek(file, 0, SEEK_SET);
	need(read(file, &byte, 1) == 1, "read");
	fchmod(file, 0644);
	need(ftruncate(file, 0) == 0, "ftruncate");
	close(file);
	int count;
	need(ioctl(notices, FIONREAD, &count) == 0, "FIONREAD");
	say("there are %d bytes", count);
	tell("too short", read(notices, small, sizeof small));
	show("a file");
	mkdir("folder/new", 0700);
	need(rename("folder/file", "folder/renamed") == 0, "rename");
	need(rename("folder/renamed", "other/away") == 0, "rename");
	need(rename("other/away", "folder/back") == 0, "rename");
	need(link("folder/back", "folder/link") == 0 && symlink("x", "folder/text") == 0, "link");
	show("names");
	unlink("folder/link");
	unlink("folder/back");
	rmdir("folder/new");
	unlink("folder/text");
	show("removed");
	close(open("single", O_CREAT | O_WRONLY, 0600));
	int single = inotify_add_watch(notices, "single", IN_MODIFY | IN_DELETE_SELF | IN_ATTRIB);
	say("the same: %d", inotify_add_watch(notices, "single", IN_MODIFY | IN_DELETE_SELF | IN_ATTRIB) == single);
	file = open("single", O_WRONLY);
	need(write(file, &byte, 1) == 1, "write");
	close(file);
	unlink("single");
	show("single");
	tell("it is gone", inotify_rm_watch(notices, single));
	tell("once", inotify_add_watch(notices, "other", IN_CREATE | IN_ONESHOT) > 0 ? 0 : -1);
	mkdir("other/one", 0700);
	mkdir("other/two", 0700);
	show("once");
	struct pollfd one = { notices, POLLIN, 0 };
	say("poll: %d", poll(&one, 1, 0));
	need(pthread_create(&thread, NULL, makes_late, NULL) == 0, "pthread_create");
	say("poll: %d", poll(&one, 1, 5000));
	pthread_join(thread, NULL);
	usleep(10000);
	show("late");
	tell("forget", inotify_rm_watch(notices, folder));
	tell("again", inotify_rm_watch(notices, folder));
	mkdir("folder/unseen", 0700);
	show("forgotten");
	show("none");
	inotify_add_watch(notices, "folder", IN_DELETE_SELF | IN_MOVE_SELF);
	rmdir("folder/unseen");
	unlink("folder/late");
	need(rename("folder", "moved") == 0 && rmdir("moved") == 0, "rmdir");
	show("itself");
	close(notices);
	return 0;
}
