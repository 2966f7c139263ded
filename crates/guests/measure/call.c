/* A system call that does nothing. */
#include "measure.h"
#include <sys/syscall.h>

/* As `ask`, but that not even arguments are prepared. */
static inline void call_by_itself(void)
{
	long answer = SYS_getppid;
	__asm__ volatile("syscall" : "+a"(answer) : : "rcx", "r11", "memory");
}

static uint64_t sample(int index)
{
	(void)index;
	uint64_t start = now();
	call_by_itself();
	return now() - start;
}

static unsigned call(void)
{
	call_by_itself();
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "call", sample, call, 0 }, count, arguments);
}
