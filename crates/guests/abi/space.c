/* Space in files: sizes, holes, files without a name. */
#include "abi.h"
#include <sys/sendfile.h>
#include <sys/statfs.h>

static long size_of(int file)
{
	struct stat data;
	return fstat(file, &data) == 0 ? (long)data.st_size : -1;
}

int main(void)
{
	enter_folder();
	int file = memfd_create("name", MFD_CLOEXEC);
	need(file >= 0, "memfd_create");
	struct stat data;
	need(fstat(file, &data) == 0, "fstat");
	say("new: %ld bytes, %ld names, mode %o", (long)data.st_size, (long)data.st_nlink, data.st_mode & 0777);
	say("closed by exec: %d", fcntl(file, F_GETFD) == FD_CLOEXEC);
	say("write: %zd", write(file, "hello", 5));
	need(ftruncate(file, 2 * PAGE) == 0, "ftruncate");
	char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(at != MAP_FAILED, "mmap");
	at[0] = 'J';
	char text[8] = "";
	say("the same memory: %zd <%s>", pread(file, text, 5, 0), text);
	tell("bad flags", memfd_create("name", 0x8000));
	tell("bad name", memfd_create(nowhere, 0));
	char long_name[300];
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[299] = 0;
	tell("long name", memfd_create(long_name, 0));

	tell("allocate", fallocate(file, 0, PAGE, 3 * PAGE));
	say("larger: %ld pages, kept <%c>", size_of(file) / PAGE, at[0]);
	tell("allocate what is there", fallocate(file, 0, 0, PAGE));
	say("as large: %ld pages, kept <%c>", size_of(file) / PAGE, at[0]);
	tell("nothing", fallocate(file, 0, 0, 0));
	tell("before the start", fallocate(file, 0, -1, PAGE));
	tell("too far", fallocate(file, 0, 0x7fffffffffffffff, 2));
	tell("no file", fallocate(77, 0, 0, PAGE));
	int pipes[2];
	need(pipe(pipes) == 0, "pipe");
	tell("a pipe", fallocate(pipes[1], 0, 0, PAGE));

	int other = open("a", O_RDWR | O_CREAT, 0600);
	tell("truncate", truncate("a", 10));
	say("size: %ld", size_of(other));
	tell("truncate nothing", truncate("b", 10));
	tell("truncate a folder", truncate(".", 10));
	tell("truncate to less than nothing", truncate("a", -1));
	int only = open("a", O_RDONLY);
	tell("not to be written", ftruncate(only, 1));
	tell("not a file", ftruncate(pipes[1], 1));

	tell("advice", posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED) ? -1 : 0);
	say("bad advice: %s", strerror(posix_fadvise(file, 0, 0, 77)));
	say("advice to a pipe: %s", strerror(posix_fadvise(pipes[0], 0, 0, POSIX_FADV_NORMAL)));

	lseek(file, 1, SEEK_SET);
	say("send: %zd, at %ld", sendfile(other, file, NULL, 4), (long)lseek(file, 0, SEEK_CUR));
	off_t offset = 2;
	say("send from: %zd, to %ld, at %ld", sendfile(other, file, &offset, 3), (long)offset, (long)lseek(file, 0, SEEK_CUR));
	char sent[8] = "";
	say("sent: %zd <%s>", pread(other, sent, 7, 0), sent);
	say("to a pipe: %zd", (offset = 0, sendfile(pipes[1], file, &offset, 5)));
	memset(sent, 0, sizeof sent);
	say("through it: %zd <%s>", read(pipes[0], sent, 5), sent);
	offset = 1L << 40;
	say("behind the end: %zd", sendfile(other, file, &offset, 5));
	tell("from a pipe", sendfile(other, pipes[0], NULL, 5));
	tell("to what is only read", sendfile(only, file, NULL, 5));

	struct statfs system;
	need(statfs("/proc", &system) == 0, "statfs");
	tell("of a file", fstatfs(other, &system));
	say("pages: %d, names: %ld", system.f_bsize > 0 && system.f_bfree <= system.f_blocks, (long)system.f_namelen);
	tell("of nothing", statfs("nothing", &system));
	return 0;
}
