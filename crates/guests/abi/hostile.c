/* What a program may do to its own registers, stacks and arguments hurts nobody but itself. */
#include "abi.h"
#include <sys/syscall.h>
#include <ucontext.h>

#define KERNEL (1ul << 63 | 4096)
#define BETWEEN (1ul << 62)
#define EDGE ((1ul << 47) - 4096)

/* A stack that is nowhere is another signal on some processors. */
static void dies(const char *what, pid_t child)
{
	int status;
	need(waitpid(child, &status, 0) == child, "waitpid");
	say("%s: %s", what, WIFSIGNALED(status) ? "dies" : "lives");
}

static unsigned long value;
static int which;

/* Changes a register of the code that was interrupted. */
static void change(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[which] = value;
}

/* A child returns from a handler with another register. */
static void return_with(const char *what, int reg, unsigned long to)
{
	which = reg;
	value = to;
	pid_t child = fork();
	if (child == 0) {
		struct sigaction how = { .sa_sigaction = change, .sa_flags = SA_SIGINFO };
		sigaction(SIGUSR1, &how, NULL);
		raise(SIGUSR1);
		_exit(7);
	}
	dies(what, child);
}

/* The flags after a return from a handler that has set `value` among them. */
static int flags_stay(void)
{
	struct sigaction how = { .sa_sigaction = change, .sa_flags = SA_SIGINFO };
	unsigned long flags;
	sigaction(SIGUSR1, &how, NULL);
	which = REG_EFL;
	value = 0x3000 | 0x4000 | 0x200000 | 0x202;	/* I/O rights, nested task, identification */
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	asm volatile("pushf; pop %0" : "=r"(flags));
	say("I/O rights: %d, interrupts: %d", !!(flags & 0x3000), !!(flags & 0x200));
	return 0;
}

/* System calls with flags of one's own come back with them. */
static int flags_in_calls(void)
{
	unsigned long flags;
	long result;
	asm volatile("std; syscall; pushf; pop %1; cld" : "=a"(result), "=r"(flags) : "0"(SYS_getppid) : "rcx", "r11", "memory");
	say("direction stays: %d", !!(flags & 0x400));
	asm volatile("pushf; orl $0x40000, (%%rsp); popf; syscall; pushf; pop %1; pushf; andl $~0x40000, (%%rsp); popf"
		     : "=a"(result), "=r"(flags) : "0"(SYS_getppid) : "rcx", "r11", "memory", "cc");
	say("alignment check stays: %d, %d", !!(flags & 0x40000), result == getppid());
	return 0;
}

/* Goes on after the call at an address that is no user's: `syscall` is the last instruction below. */
static int call_at_the_edge(void)
{
	char *last = mmap((void *)(EDGE - PAGE), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (last == MAP_FAILED)
		return 1;
	memcpy(last + PAGE - 2, "\x0f\x05", 2);
	asm volatile("jmp *%1" : : "a"(SYS_getppid), "r"(last + PAGE - 2) : "rcx", "r11", "memory");
	return 2;
}

static int stack_of_the_kernel(void)
{
	asm volatile("mov %0, %%rsp; mov $39, %%eax; syscall; push %%rax" : : "r"(KERNEL) : "rax", "rcx", "r11", "memory");
	return 1;
}

/* A signal finds no stack for its handler. */
static int handler_without_stack(void)
{
	struct sigaction how = { .sa_sigaction = change, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &how, NULL);
	asm volatile("mov %0, %%rsp; push %%rax" : : "r"(BETWEEN) : "memory");
	return 1;
}

static int return_from_nothing(void)
{
	asm volatile("mov $15, %%eax; mov %0, %%rsp; syscall" : : "r"(nowhere) : "rax", "rcx", "r11", "memory");
	return 1;
}

static int thread_pointer(void)
{
	tell("thread pointer in the kernel", syscall(SYS_arch_prctl, 0x1002, KERNEL));
	tell("between", syscall(SYS_arch_prctl, 0x1002, BETWEEN));
	return 0;
}

/* Sizes and pointers that no call may believe. */
static void arguments(void)
{
	int ends[2];
	need(pipe(ends) == 0, "pipe");
	tell("write from the kernel", write(ends[1], (void *)KERNEL, 10));
	tell("write from between", write(ends[1], (void *)BETWEEN, 10));
	tell("write across the edge", write(ends[1], (void *)(EDGE - 8), 8192));
	tell("read to the kernel", (need(write(ends[1], "x", 1) == 1, "x"), read(ends[0], (void *)KERNEL, 1)));
	tell("map all", (long)mmap(NULL, -4096ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	tell("map at the kernel", (long)mmap((void *)KERNEL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	tell("unmap to the end", munmap((void *)PAGE, -8192ul));
	tell("protect around", mprotect((void *)-4096ul, 8192, PROT_READ));
	tell("grow beyond", (long)mremap((void *)KERNEL, PAGE, 2 * PAGE, 0));
	tell("many parts", syscall(SYS_writev, ends[1], nowhere, 1ul << 20));
	tell("parts in the kernel", syscall(SYS_writev, ends[1], KERNEL, 2));
	tell("many to poll", syscall(SYS_poll, nowhere, -1ul, 0));
	tell("poll nowhere", syscall(SYS_poll, nowhere, 1, 0));
	tell("a path in the kernel", syscall(SYS_open, KERNEL, 0, 0));
	tell("arguments in the kernel", syscall(SYS_execve, "/proc/self/exe", KERNEL, 0));
	tell("a signal's action in the kernel", syscall(SYS_rt_sigaction, SIGUSR1, KERNEL, 0, 8));
	tell("status to the kernel", syscall(SYS_wait4, -1, KERNEL, WNOHANG, 0));
	tell("time to the kernel", syscall(SYS_clock_gettime, 0, KERNEL));
	tell("random to the kernel", syscall(SYS_getrandom, KERNEL, 8, 0));
	tell("no such call", syscall(9999));
	tell("nor this", syscall(-1));
	tell("descriptor", dup2(1, 1 << 30));
}

int main(void)
{
	return_with("instructions in the kernel", REG_RIP, KERNEL);
	return_with("instructions between", REG_RIP, BETWEEN);
	return_with("instructions at the edge", REG_RIP, 1ul << 47);
	return_with("stack in the kernel", REG_RSP, KERNEL);
	return_with("stack between", REG_RSP, BETWEEN);
	return_with("no segments", REG_CSGSFS, 0);
	return_with("the kernel's segments", REG_CSGSFS, 0x10ul | 0x18ul << 48);
	reap("flags", spawn(flags_stay));
	reap("flags in calls", spawn(flags_in_calls));
	reap("call at the edge", spawn(call_at_the_edge));
	dies("stack of the kernel", spawn(stack_of_the_kernel));
	dies("handler without stack", spawn(handler_without_stack));
	reap("return from nothing", spawn(return_from_nothing));
	reap("thread pointer", spawn(thread_pointer));
	arguments();
	return 0;
}
