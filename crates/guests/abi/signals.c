/* Signals: who gets them, when, on which stack, and what they interrupt. */
#include "abi.h"
#include <sys/time.h>

static volatile int count, depth, deepest, sender, on_stack;
static char *stack;
static int ends[2];

static void on(int number, void (*handler)(int), int flags, int masked)
{
	struct sigaction how = { .sa_handler = handler, .sa_flags = flags };
	sigemptyset(&how.sa_mask);
	if (masked)
		sigaddset(&how.sa_mask, masked);
	need(sigaction(number, &how, NULL) == 0, "sigaction");
}

static void tally(int number)
{
	(void)number;
	count++;
}

static void nest(int number)
{
	if (++depth > deepest)
		deepest = depth;
	if (depth < 3 && count++ < 3)
		raise(number);
	depth--;
}

static void raise_other(int number)
{
	(void)number;
	raise(SIGUSR2);
	say("within the first: %d", count);
}

static void inform(int number, siginfo_t *info, void *context)
{
	(void)context;
	sender = info->si_pid;
	say("signal %d, code %d, status %d", number, info->si_code, number == SIGCHLD ? info->si_status : 0);
}

static void where(int number)
{
	char here;
	on_stack = &here > stack && &here < stack + 16 * PAGE;
	(void)number;
}

static void masks(void)
{
	sigset_t one, old, pending;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigprocmask(SIG_BLOCK, &one, &old);
	count = 0;
	on(SIGUSR1, tally, 0, 0);
	raise(SIGUSR1);
	raise(SIGUSR1);
	sigpending(&pending);
	say("blocked: %d, pending: %d", count, sigismember(&pending, SIGUSR1));
	sigset_t none;
	sigemptyset(&none);
	tell("suspend", sigsuspend(&none));
	say("once: %d", count);
	raise(SIGUSR1);
	sigprocmask(SIG_SETMASK, &old, NULL);
	say("unblocked: %d", count);
	on(SIGUSR1, raise_other, 0, SIGUSR2);
	on(SIGUSR2, tally, 0, 0);
	count = 0;
	raise(SIGUSR1);
	say("masked while the first is handled: %d", count);
}

static void nesting(void)
{
	count = deepest = 0;
	on(SIGUSR1, nest, 0, 0);
	raise(SIGUSR1);
	say("depth without SA_NODEFER: %d", deepest);
	count = deepest = 0;
	on(SIGUSR1, nest, SA_NODEFER, 0);
	raise(SIGUSR1);
	say("with it: %d", deepest);
	on(SIGUSR1, tally, SA_RESETHAND, 0);
	raise(SIGUSR1);
	struct sigaction how;
	sigaction(SIGUSR1, NULL, &how);
	say("reset: %d", how.sa_handler == SIG_DFL);
}

static int leave(void)
{
	return 9;
}

static void information(void)
{
	struct sigaction how = { .sa_sigaction = inform, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &how, NULL);
	kill(getpid(), SIGUSR1);
	say("from this process: %d", sender == getpid());
	sigaction(SIGCHLD, &how, NULL);
	sigset_t child_signal, old;
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, &old);
	pid_t child = spawn(leave);
	sigsuspend(&old);
	say("from the child: %d", sender == child);
	reap("child", child);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGCHLD, SIG_DFL);
}

/* A read that sleeps is interrupted by the timer, and goes on only if the handler was installed so. */
static void interruption(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 20000 } };
	char byte;
	need(pipe(ends) == 0, "pipe");
	on(SIGALRM, tally, 0, 0);
	setitimer(ITIMER_REAL, &soon, NULL);
	tell("read", read(ends[0], &byte, 1));
	on(SIGALRM, tally, SA_RESTART, 0);
	count = 0;
	pid_t child = fork();
	if (child == 0) {
		usleep(100000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	setitimer(ITIMER_REAL, &soon, NULL);
	ssize_t got = read(ends[0], &byte, 1);
	say("restarted: %zd, after %d signal", got, count);
	reap("writer", child);
	tell("pause", (setitimer(ITIMER_REAL, &soon, NULL), pause()));
	usleep(1000);
	say("alarm left: %u", alarm(100));
	say("alarm left: %u", alarm(0));
}

static void other_stack(void)
{
	stack = memory(16);
	stack_t how = { .ss_sp = stack, .ss_size = 16 * PAGE };
	tell("another stack", sigaltstack(&how, NULL));
	on(SIGUSR1, where, SA_ONSTACK, 0);
	raise(SIGUSR1);
	say("used: %d", on_stack);
	on(SIGUSR1, where, 0, 0);
	raise(SIGUSR1);
	say("not used: %d", on_stack);
	how.ss_size = 1;
	tell("too small", sigaltstack(&how, NULL));
}

/* Registers, floating point among them, are as before. */
static void registers(void)
{
	double before = 1.0 / 3;
	long integers[4] = { 1, 2, 3, 4 };
	on(SIGUSR1, tally, 0, 0);
	for (int i = 0; i < 100; i++) {
		before += i;
		raise(SIGUSR1);
		integers[i % 4] += i;
	}
	say("%.6f %ld %ld %ld %ld", before, integers[0], integers[1], integers[2], integers[3]);
}

int main(void)
{
	masks();
	nesting();
	information();
	interruption();
	other_stack();
	registers();
	tell("catch what cannot be caught", sigaction(SIGKILL, &(struct sigaction){ .sa_handler = tally }, NULL));
	tell("no such signal", kill(getpid(), 99));
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	say("ignored");
	signal(SIGTERM, SIG_DFL);
	raise(SIGTERM);
	return 0;
}
