/* Groups of processes and sessions; processes that are stopped and continued. */
#include "abi.h"
#include <time.h>

static int ends[2];

static int sleep_on(void)
{
	for (;;)
		pause();
	return 0;
}

static int work_on(void)
{
	for (volatile long i = 0;; i++)
		;
	return 0;
}

/* What waitid says of a child. */
static void about(const char *what, idtype_t kind, id_t id, int options)
{
	siginfo_t info = { 0 };
	if (waitid(kind, id, &info, options)) {
		tell(what, -1);
		return;
	}
	say("%s: signal %d, code %d, status %d", what, info.si_signo, info.si_code, info.si_status);
}

static void numbers(void)
{
	pid_t self = getpid();
	setpgid(0, 0);
	say("a group of one's own: %d", getpgrp() == self && getpgid(0) == self && getpgid(self) == self);
	pid_t child = spawn(sleep_on);
	say("a child is in it: %d", getpgid(child) == self && getsid(child) == getsid(0));
	tell("a group for the child", setpgid(child, 0));
	say("it is there: %d", getpgid(child) == child);
	tell("back", setpgid(child, self));
	tell("a group that does not exist", setpgid(child, 999999));
	tell("of a process that does not exist", setpgid(999999, 0));
	tell("a negative one", setpgid(child, -1));
	tell("its group", getpgid(999999));
	kill(child, SIGKILL);
	reap("child", child);
	tell("a session for the first of a group", setsid());
}

static int lead(void)
{
	pid_t self = getpid();
	say("a session: %d", setsid() == self && getsid(0) == self && getpgrp() == self);
	tell("another group for its first", setpgid(0, 0));
	return 3;
}

/* Signals go to all of a group, and to nobody else. */
static void sending(void)
{
	pid_t first = spawn(sleep_on), second = spawn(sleep_on), other = spawn(sleep_on);
	setpgid(first, first);
	setpgid(second, first);
	tell("is somebody there", kill(-first, 0));
	tell("end them", kill(-first, SIGTERM));
	about("one of the group", P_PGID, first, WEXITED);
	int status, count = 0;
	while (waitpid(-first, &status, 0) > 0)
		count += WIFSIGNALED(status);
	say("others of the group: %d", count);
	tell("the group has gone", kill(-first, 0));
	say("another lives: %d", waitpid(other, &status, WNOHANG) == 0);
	kill(other, SIGKILL);
	reap("the other", other);
}

static volatile int heard, code;

static void hear(int number, siginfo_t *info, void *context)
{
	(void)context;
	heard = number;
	code = info->si_code;
}

static void stopping(const char *what, int (*body)(void), int how_stopped)
{
	int status = 0;
	struct sigaction how = { .sa_sigaction = hear, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigaction(SIGCHLD, &how, NULL);
	pid_t child = spawn(body);
	/* A group whose parent is here can be stopped from a terminal; that of a child of process 1 cannot. */
	setpgid(child, child);
	say("%s", what);
	usleep(10000);
	kill(child, how_stopped);
	need(waitpid(child, &status, WUNTRACED) == child, "waitpid");
	say("stopped: %d by %d", WIFSTOPPED(status), WSTOPSIG(status));
	usleep(10000);
	say("heard: %d, code %d", heard, code);
	say("once: %d", waitpid(child, &status, WUNTRACED | WNOHANG));
	kill(child, SIGTERM);
	usleep(10000);
	say("does not end: %d", waitpid(child, &status, WNOHANG));
	kill(child, SIGCONT);
	reap("continued", child);
	signal(SIGCHLD, SIG_DFL);
}

static void continuing(void)
{
	pid_t child = spawn(sleep_on);
	kill(child, SIGSTOP);
	about("stopped, asked twice", P_PID, child, WSTOPPED | WNOWAIT);
	about("stopped", P_PID, child, WSTOPPED);
	kill(child, SIGCONT);
	about("continued", P_PID, child, WCONTINUED);
	kill(child, SIGSTOP);
	about("stopped", P_PID, child, WSTOPPED);
	kill(child, SIGKILL);
	about("killed while stopped", P_PID, child, WEXITED);
	about("nobody", P_ALL, 0, WEXITED);
}

/* A sleep goes on where it was, and ends when it would have. */
static int sleep_through(void)
{
	struct timespec half = { 0, 100000000 };
	int result = nanosleep(&half, NULL);
	char byte;
	return result ? 1 : read(ends[0], &byte, 1) == 1 ? 5 : 2;
}

static void calls_go_on(void)
{
	need(pipe(ends) == 0, "pipe");
	pid_t child = spawn(sleep_through);
	for (int i = 0; i < 20; i++) {
		usleep(10000);
		kill(child, i % 2 ? SIGCONT : SIGSTOP);
	}
	kill(child, SIGCONT);
	need(write(ends[1], "x", 1) == 1, "write");
	reap("calls go on", child);
}

static int ignored(void)
{
	signal(SIGTSTP, SIG_IGN);
	raise(SIGTSTP);
	return 4;
}

/* A group that no shell could continue is not stopped by a terminal's signals. */
static int orphan(void)
{
	setsid();
	raise(SIGTSTP);
	raise(SIGTTIN);
	return 6;
}

/* A process in another session is no shell of the group it came from: that does not hang up when it ends. */
static int emigrate(void)
{
	int status;
	pid_t child = fork();
	if (child == 0)
		_exit(raise(SIGSTOP));
	need(waitpid(child, &status, WUNTRACED) == child && setsid() > 0, "setsid");
	return write(ends[1], &child, sizeof child) != sizeof child;
}

static void emigrating(void)
{
	pid_t left;
	need(pipe(ends) == 0, "pipe");
	reap("emigrant", spawn(emigrate));
	need(read(ends[0], &left, sizeof left) == sizeof left, "read");
	usleep(10000);
	say("the one that stays is there: %d", kill(left, 0));
	kill(left, SIGKILL);
}

static int end_at_once(void)
{
	return 0;
}

/* Of children for whose end the parent does not care none is seen when it ends, however closely the parent looks. */
static void leaving_nothing(const char *what, int look)
{
	int status, seen = 0;
	for (int i = 0; i < 100; i++) {
		pid_t child;
		spawn(end_at_once);
		spawn(end_at_once);
		while ((child = waitpid(-1, &status, look)) != -1)
			seen += child > 0;
		need(errno == ECHILD, "waitpid");
	}
	say("%s: %d seen", what, seen);
}

static void not_caring(void)
{
	struct sigaction how = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	int status;
	signal(SIGCHLD, SIG_IGN);
	spawn(ignored);
	tell("ignored children", waitpid(-1, &status, 0));
	leaving_nothing("ignored, asleep", 0);
	leaving_nothing("ignored, looking", WNOHANG);
	sigaction(SIGCHLD, &how, NULL);
	leaving_nothing("not waited for, asleep", 0);
	leaving_nothing("not waited for, looking", WNOHANG);
	signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
	numbers();
	reap("leader", spawn(lead));
	sending();
	stopping("asleep", sleep_on, SIGSTOP);
	stopping("at work", work_on, SIGTSTP);
	continuing();
	calls_go_on();
	reap("ignores stops", spawn(ignored));
	reap("orphaned", spawn(orphan));
	emigrating();
	not_caring();
	return 0;
}
