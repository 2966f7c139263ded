/* What a thread finds in its registers when the kernel lets it go on: after a call, after a handler, and step by step. */
#include "abi.h"
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile int has_come;
static long steps[64];
static volatile int count;
extern char behind_call[];

static void call(void)
{
	long kept, to;
	asm volatile("mov $1, %%rbx; mov $2, %%rdi; mov $4, %%rsi; mov $8, %%rdx; mov $16, %%r8; mov $32, %%r9;"
		     "mov $64, %%r10; mov $128, %%r12; mov $256, %%r13; mov $512, %%r14; lea 1f(%%rip), %%r15;"
		     "mov %2, %%eax; syscall; 1: sub %%r15, %%rcx;"
		     "lea (%%rbx, %%rdi), %%rax; add %%rsi, %%rax; add %%rdx, %%rax; add %%r8, %%rax; add %%r9, %%rax;"
		     "add %%r10, %%rax; add %%r12, %%rax; add %%r13, %%rax; add %%r14, %%rax"
		     : "=&a"(kept), "=&c"(to) : "i"(SYS_getppid)
		     : "rbx", "rdi", "rsi", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory");
	say("a call: kept %ld, rcx %ld behind it", kept, to);
}

static void alarmed(int number UNUSED)
{
	has_come = getppid() >= 0;
}

/* The handler returns by a call; what was interrupted had made none. */
static void handler(void)
{
	long rcx, r11;
	signal(SIGALRM, alarmed);
	struct itimerval soon = { .it_value.tv_usec = 20000 };
	need(setitimer(ITIMER_REAL, &soon, NULL) == 0, "setitimer");
	asm volatile("mov $0x1234, %%rcx; mov $0x5678, %%r11; 1: cmpl $0, %2; je 1b; mov %%r11, %1"
		     : "=&c"(rcx), "=&r"(r11) : "m"(has_come) : "r11", "cc", "memory");
	say("a handler: rcx %lx, r11 %lx", rcx, r11);
}

static void stepped(int number UNUSED, siginfo_t *info UNUSED, void *context)
{
	ucontext_t *at = context;
	if (count < 64)
		steps[count++] = at->uc_mcontext.gregs[REG_RIP] - (long)behind_call;
}

static void step(void)
{
	struct sigaction how = { .sa_sigaction = stepped, .sa_flags = SA_SIGINFO };
	sigaction(SIGTRAP, &how, NULL);
	asm volatile("pushf; orl $0x100, (%%rsp); popf; mov %0, %%eax; syscall; behind_call: nop; nop; nop;"
		     "pushf; andl $~0x100, (%%rsp); popf"
		     : : "i"(SYS_getppid) : "rax", "rcx", "r11", "cc", "memory");
	for (int i = 0; i < count; i++)
		if (steps[i] >= 0 && steps[i] < 4)
			say("a step to %ld behind the call", steps[i]);
}

int main(void)
{
	call();
	handler();
	step();
	return 0;
}
