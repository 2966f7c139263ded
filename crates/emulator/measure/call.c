/* A system call that does nothing. */
#include "measure.h"
#include <sys/syscall.h>

static uint64_t sample(int index)
{
	(void)index;
	uint64_t start = now();
	ask(SYS_getppid, 0, 0, 0);
	return now() - start;
}

static unsigned call(void)
{
	ask(SYS_getppid, 0, 0, 0);
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "call", sample, call, 0 }, count, arguments);
}
