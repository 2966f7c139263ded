/* What a handler is told of the instruction that failed, and what it may change. */
#include "abi.h"
#include <setjmp.h>
#include <ucontext.h>

static sigjmp_buf back;
static char *expected;
static volatile int skip;

static void told(int number, siginfo_t *info, void *context)
{
	ucontext_t *where = context;
	if (skip) {
		where->uc_mcontext.gregs[REG_RIP] += skip;
		skip = 0;
		return;
	}
	say("signal %d, code %d, the address: %d", number, info->si_code, (char *)info->si_addr == expected);
	siglongjmp(back, 1);
}

/* Does something that fails. */
static void fail(const char *what, void (*body)(void))
{
	say("%s", what);
	if (sigsetjmp(back, 1) == 0) {
		body();
		say("nothing happened");
	}
}

static char *read_only, *no_rights, *beyond;

static void read_nowhere(void)
{
	expected = nowhere;
	(void)*(volatile char *)nowhere;
}

static void write_read_only(void)
{
	expected = read_only + 5;
	read_only[5] = 1;
}

static void read_without_rights(void)
{
	expected = no_rights + 7;
	(void)*(volatile char *)(no_rights + 7);
}

static void execute_data(void)
{
	expected = read_only;
	((void (*)(void))read_only)();
}

static void read_beyond(void)
{
	expected = beyond;
	(void)*(volatile char *)beyond;
}

/* Not an address at all: the processor does not say which. */
static void read_odd(void)
{
	expected = NULL;
	asm volatile("movb (%0), %%al" : : "r"(1ul << 63 | 5) : "rax");
}

static void jump_odd(void)
{
	asm volatile("jmp *%0" : : "r"(1ul << 62));
}

static void divide(void)
{
	asm volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; xor %%edx, %%edx; mov $1, %%eax; xor %%ecx, %%ecx; 1: div %%ecx"
		     : "=m"(expected) : : "rax", "rcx", "rdx");
}

static void unknown(void)
{
	asm volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; 1: ud2" : "=m"(expected) : : "rax");
}

static void privileged(void)
{
	expected = NULL;
	asm volatile("hlt");
}

static void breakpoint(void)
{
	expected = NULL;
	asm volatile("int3");
}

static void forbidden_interrupt(void)
{
	expected = NULL;
	asm volatile("int $0x30");
}

/* Gives the right that was missing; then the instruction is done again. */
static void repair(int number)
{
	(void)number;
	mprotect(no_rights, PAGE, PROT_READ | PROT_WRITE);
}

static void with_rights(void)
{
	signal(SIGSEGV, repair);
	*(volatile char *)no_rights = (char)0xc3; /* ret */
	say("stored after a repair: %d", *no_rights == (char)0xc3);
	need(mprotect(no_rights, PAGE, PROT_READ | PROT_EXEC) == 0, "mprotect");
	((void (*)(void))no_rights)();
	say("executed");
}

static void step(void)
{
	say("one step");
	if (sigsetjmp(back, 1) == 0)
		asm volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; pushf; orl $0x100, (%%rsp); popf; nop; 1: nop"
			     : "=m"(expected) : : "rax", "cc", "memory");
}

static int (*volatile again)(int);

static int overflow(int depth)
{
	volatile char frame[4096];
	frame[0] = depth;
	return again(depth + 1) + frame[0];
}

static void recurse(void)
{
	again = overflow;
	say("%d", overflow(0));
}

static void deep(int number)
{
	say("on the other stack: signal %d", number);
	siglongjmp(back, 1);
}

static int blocked(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	read_nowhere();
	return 0;
}

static int ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	read_nowhere();
	return 0;
}

int main(void)
{
	struct sigaction how = { .sa_sigaction = told, .sa_flags = SA_SIGINFO };
	int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &how, NULL);
	read_only = map(1, PROT_READ, MAP_PRIVATE);
	no_rights = map(1, PROT_NONE, MAP_PRIVATE);
	enter_folder();
	int file = open("short", O_CREAT | O_RDWR, 0600);
	need(ftruncate(file, 10) == 0, "ftruncate");
	beyond = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, 0) + PAGE;
	fail("nothing there", read_nowhere);
	fail("read only", write_read_only);
	fail("no rights", read_without_rights);
	fail("data as code", execute_data);
	fail("behind the end of a file", read_beyond);
	fail("no address", read_odd);
	say("no code");
	expected = NULL;
	if (sigsetjmp(back, 1) == 0)
		jump_odd();
	fail("division", divide);
	fail("unknown instruction", unknown);
	fail("instruction of the kernel's", privileged);
	fail("breakpoint", breakpoint);
	fail("interrupt of nobody's", forbidden_interrupt);
	step();
	skip = 2;
	asm volatile("ud2");
	say("skipped");
	stack_t other = { .ss_sp = memory(4), .ss_size = 4 * PAGE };
	sigaltstack(&other, NULL);
	how = (struct sigaction){ .sa_handler = deep, .sa_flags = SA_ONSTACK };
	sigaction(SIGSEGV, &how, NULL);
	fail("stack overflow", recurse);
	with_rights();
	reap("blocked", spawn(blocked));
	reap("ignored", spawn(ignored));
	return 0;
}
