/* Users other than root: what files and processes they may use. */
#include "abi.h"
#include <dirent.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <sys/auxv.h>

enum { NOBODY = 65534, SOMEBODY = 1234, GROUP = 77 };

static pid_t parent;

static void who(const char *what)
{
	uid_t users[3];
	gid_t groups[3], others[8];
	getresuid(users, users + 1, users + 2);
	getresgid(groups, groups + 1, groups + 2);
	int count = getgroups(8, others);
	say("%s: %d %d %d, %d %d %d, %d further", what, users[0], users[1], users[2], groups[0], groups[1], groups[2], count);
}

static void become(int user, int group)
{
	gid_t others[2] = { GROUP, 5 };
	need(setgroups(2, others) == 0 && setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0, "become");
}

static int changes(void)
{
	become(NOBODY, NOBODY);
	who("nobody");
	tell("root again", setuid(0));
	tell("another", setresuid(-1, SOMEBODY, -1));
	tell("groups", setgroups(0, NULL));
	tell("oneself", setreuid(NOBODY, NOBODY));
	say("for files: %d", setfsuid(0));
	say("still: %d", setfsuid(-1));
	say("room for one: %d", getgroups(1, (gid_t[1]){ 0 }));
	return 0;
}

static int returns(void)
{
	tell("for a while", setresuid(NOBODY, NOBODY, 0));
	who("nobody for now");
	tell("a file of root", access("/root-only", F_OK));
	tell("root again", seteuid(0));
	who("root again");
	tell("the real one", setreuid(0, NOBODY));
	who("acts as nobody");
	tell("exchanged", setreuid(NOBODY, 0));
	who("exchanged");
	tell("for ever", setuid(SOMEBODY));
	who("somebody");
	tell("no more", setuid(0));
	return 0;
}

static void attempt(const char *what, int fd)
{
	tell(what, fd < 0 ? -1 : 0);
	if (fd >= 0)
		close(fd);
}

static int files(void)
{
	struct stat stat;
	become(NOBODY, NOBODY);
	attempt("read", open("private", O_RDONLY));
	attempt("write", open("public", O_WRONLY));
	attempt("read the public", open("public", O_RDONLY));
	attempt("the group's", open("group", O_RDWR));
	attempt("only a place", open("private", O_PATH));
	tell("access", access("public", R_OK));
	tell("access to write", access("public", W_OK));
	tell("access to run", access("public", X_OK));
	tell("look up", lstat("closed/name", &stat));
	tell("enter", chdir("closed"));
	tell("create", mkdir("new", 0700));
	tell("create an existing", mkdir("open", 0700));
	tell("create a link", symlink("x", "new"));
	tell("remove", unlink("public"));
	tell("rename", rename("public", "other"));
	tell("remove none", unlink("none"));
	tell("mode", chmod("public", 0777));
	tell("owner", chown("public", NOBODY, -1));
	tell("times", utimensat(AT_FDCWD, "private", NULL, 0));
	tell("truncate", truncate("public", 0));
	tell("run", execl("public", "public", NULL));
	tell("device", mknod("open/device", S_IFCHR | 0600, 1 << 8 | 3));
	tell("open folder", mkdir("open/own", 0750));
	need(lstat("open/own", &stat) == 0, "lstat");
	say("owner %d, group %d, mode %o", stat.st_uid, stat.st_gid, stat.st_mode & 07777);
	tell("its group", chown("open/own", -1, GROUP));
	tell("another group", chown("open/own", -1, SOMEBODY));
	tell("another owner", chown("open/own", SOMEBODY, -1));
	tell("its mode", chmod("open/own", 0700));
	tell("remove another's", unlink("open/roots"));
	tell("rename another's", rename("open/roots", "open/mine"));
	attempt("a file", open("open/file", O_CREAT | O_WRONLY, 0));
	attempt("without rights", open("open/file", O_RDONLY));
	tell("rename", rename("open/file", "open/mine"));
	tell("over another's", rename("open/mine", "open/roots"));
	tell("remove", unlink("open/mine"));
	attempt("group's folder", open("set/file", O_CREAT | O_WRONLY, 0600));
	need(lstat("set/file", &stat) == 0, "lstat");
	say("group %d", stat.st_gid);
	tell("group's folder", mkdir("set/folder", 0700));
	need(lstat("set/folder", &stat) == 0, "lstat");
	say("group %d, mode %o", stat.st_gid, stat.st_mode & 07777);
	return 0;
}

static int processes(void)
{
	struct rlimit limit;
	struct sockaddr_un to = { AF_UNIX, "socket" };
	struct sockaddr_in port = { .sin_family = AF_INET, .sin_port = htons(81), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	become(NOBODY, NOBODY);
	tell("signal root", kill(parent, 0));
	tell("signal oneself", kill(getpid(), 0));
	tell("go on", kill(parent, SIGCONT));
	need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	limit.rlim_cur = 100;
	tell("lower", setrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_max++;
	tell("raise", setrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_max--;
	tell("another's", prlimit(parent, RLIMIT_NOFILE, &limit, NULL));
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	tell("connect", connect(fd, (void *)&to, sizeof to));
	close(fd);
	int pair[2];
	struct ucred peer;
	socklen_t size = sizeof peer;
	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	need(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0, "getsockopt");
	say("peer: %d %d", peer.uid, peer.gid);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	tell("a low port", bind(fd, (void *)&port, sizeof port));
	close(fd);
	char path[40];
	snprintf(path, sizeof path, "/proc/%d/fd", parent);
	tell("root's files", opendir(path) ? 0 : -1);
	say("dumpable: %d", prctl(PR_GET_DUMPABLE));
	tell("own files, not yet", opendir("/proc/self/fd") ? 0 : -1);
	tell("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	tell("own files", opendir("/proc/self/fd") ? 0 : -1);
	say("confined: %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	tell("confine", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	say("confined: %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	return 0;
}

static void child_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	say("signal of %d", info->si_uid);
}

static int raises(void)
{
	become(NOBODY, NOBODY);
	struct sigaction action = { .sa_sigaction = child_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &action, NULL);
	kill(getpid(), SIGUSR1);
	return 0;
}

static int again(void)
{
	become(NOBODY, NOBODY);
	return execl("./self", "rights", "told", NULL);
}

static int privileged(void)
{
	become(NOBODY, NOBODY);
	return execl("./privileged", "rights", "told", NULL);
}

static int confined(void)
{
	become(NOBODY, NOBODY);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return execl("./privileged", "rights", "told", NULL);
}

static void copy(const char *to, int mode)
{
	static char bytes[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY), into = open(to, O_CREAT | O_WRONLY, 0700);
	need(from >= 0 && into >= 0, "open");
	for (ssize_t count; (count = read(from, bytes, sizeof bytes)) > 0;)
		need(write(into, bytes, count) == count, "write");
	close(from);
	close(into);
	need(chmod(to, mode) == 0, "chmod");
}

int main(int count, char **arguments)
{
	if (count > 1) {
		who(arguments[1]);
		say("told: %d %d %d", (int)getauxval(AT_UID), (int)getauxval(AT_EUID), (int)getauxval(AT_SECURE));
		return 0;
	}
	parent = getpid();
	enter_folder();
	umask(0);
	chmod(".", 0755);
	close(open("private", O_CREAT | O_RDWR, 0600));
	close(open("public", O_CREAT | O_RDWR, 0644));
	close(open("group", O_CREAT | O_RDWR, 0660));
	need(chown("group", -1, GROUP) == 0, "chown");
	need(mkdir("closed", 0700) == 0 && mkdir("open", 01777) == 0 && mkdir("set", 0777) == 0, "mkdir");
	need(chown("set", -1, GROUP) == 0 && chmod("set", 02777) == 0, "chown");
	close(open("closed/name", O_CREAT | O_RDWR, 0644));
	close(open("open/roots", O_CREAT | O_RDWR, 0644));
	copy("self", 0755);
	copy("privileged", 04755);
	struct sockaddr_un to = { AF_UNIX, "socket" };
	int server = socket(AF_UNIX, SOCK_STREAM, 0);
	need(bind(server, (void *)&to, sizeof to) == 0 && listen(server, 1) == 0 && chmod("socket", 0755) == 0, "listen");
	reap("changes", spawn(changes));
	reap("returns", spawn(returns));
	reap("files", spawn(files));
	reap("processes", spawn(processes));
	reap("raises", spawn(raises));
	reap("again", spawn(again));
	reap("privileged", spawn(privileged));
	reap("confined", spawn(confined));
	struct stat stat;
	need(chown("privileged", SOMEBODY, -1) == 0 && lstat("privileged", &stat) == 0, "chown");
	say("a new owner: mode %o", stat.st_mode & 07777);
	return 0;
}
