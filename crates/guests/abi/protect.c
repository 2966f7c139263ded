/* Rights of pages, and the signals of those who lack them. */
#include "abi.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile siginfo_t seen;
static char *page;
static volatile int repairs;

static void note(int number, siginfo_t *info, void *context)
{
	(void)context;
	(void)number;
	seen = *info;
	siglongjmp(back, 1);
}

/* Loads from or stores to `at`; says what came of it. */
static void try(const char *what, volatile char *at, int store)
{
	if (sigsetjmp(back, 1) == 0) {
		if (store)
			*at = 1;
		else
			(void)*at;
		say("%s: fine", what);
		return;
	}
	const char *code = seen.si_code == SEGV_MAPERR ? "not mapped" : seen.si_code == SEGV_ACCERR ? "no right" : "?";
	say("%s: signal %d, %s, at the place: %d", what, seen.si_signo, code, seen.si_addr == (void *)at);
}

static void run(const char *what, char *at)
{
	*at = (char)0xc3; /* ret */
	need(mprotect(at, PAGE, PROT_READ) == 0, "mprotect");
	if (sigsetjmp(back, 1) == 0) {
		((void (*)(void))at)();
		say("%s: fine", what);
	} else {
		say("%s: signal %d, code %d", what, seen.si_signo, seen.si_code);
	}
	need(mprotect(at, PAGE, PROT_READ | PROT_EXEC) == 0, "mprotect");
	((void (*)(void))at)();
	say("with the right to execute: fine");
}

static void repair(int number)
{
	(void)number;
	repairs++;
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void handle(void (*action)(int, siginfo_t *, void *))
{
	struct sigaction how = { .sa_sigaction = action, .sa_flags = SA_SIGINFO };
	need(sigaction(SIGSEGV, &how, NULL) == 0, "sigaction");
}

static int die(void)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)nowhere = 1;
	return 0;
}

int main(void)
{
	handle(note);
	page = memory(3);
	try("store", page, 1);
	mprotect(page, PAGE, PROT_READ);
	try("load from a page to read", page, 0);
	try("store to it", page, 1);
	mprotect(page, PAGE, PROT_NONE);
	try("load from a page without rights", page, 0);
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	try("load with rights", page, 0);
	say("content kept: %d", page[0] == 1);
	char *code = memory(1);
	munmap(page + PAGE, PAGE);
	try("load from no page", page + PAGE, 0);
	try("store to no page", page + PAGE + 123, 1);
	try("load from address 8", nowhere, 0);
	run("execute data", code);
	tell("rights over a hole", mprotect(page, 3 * PAGE, PROT_READ));
	tell("rights within a page", mprotect(page + 1, PAGE, PROT_READ));
	tell("unknown rights", mprotect(page, PAGE, 1 << 20));
	tell("rights of nothing", mprotect(page, 0, PROT_READ));
	struct sigaction how = { .sa_handler = repair };
	sigaction(SIGSEGV, &how, NULL);
	mprotect(page, PAGE, PROT_READ);
	*(volatile char *)page = 5;
	say("the store is done again after %d repair: %d", repairs, page[0]);
	reap("a child without a handler", spawn(die));
	return 0;
}
