/* A system call that does nothing. */
#include "measure.h"
#include <sys/syscall.h>

static uint64_t sample(int index)
{
	(void)index;
	uint64_t start = now();
	syscall(SYS_getppid);
	return now() - start;
}

static unsigned call(void)
{
	syscall(SYS_getppid);
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "call", sample, call, 0 }, count, arguments);
}
