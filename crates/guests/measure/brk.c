/* The heap's end goes up by 128 KiB, untouched, and down again; by system calls, as musl has no brk. */
#include "measure.h"
#include <sys/syscall.h>

enum { LENGTH = 128 << 10 };

static long heap(long end)
{
	return ask(SYS_brk, end, 0, 0);
}

static unsigned up_and_down(void)
{
	static long end;
	if (!end)
		end = heap(0);
	check(heap(end + LENGTH) == end + LENGTH && heap(end) == end, "brk");
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "brk", NULL, up_and_down, 1 }, count, arguments);
}
