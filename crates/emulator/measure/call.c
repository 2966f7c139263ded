/* A system call that does nothing; by itself, without what a C library does around it. */
#include "measure.h"
#include <sys/syscall.h>

static inline void ask(void)
{
	long answer = SYS_getppid;
	__asm__ volatile("syscall" : "+a"(answer) : : "rcx", "r11", "memory");
}

static uint64_t sample(int index)
{
	(void)index;
	uint64_t start = now();
	ask();
	return now() - start;
}

static unsigned call(void)
{
	ask();
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "call", sample, call, 0 }, count, arguments);
}
