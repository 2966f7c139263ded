/* brk, by system calls: C libraries hide it. */
#include "abi.h"
#include <sys/syscall.h>

static char *heap(char *end)
{
	return (char *)syscall(SYS_brk, end);
}

int main(void)
{
	char *start = heap(NULL);
	char *end = start + 10 * PAGE;
	say("grow: %d", heap(end) == end);
	say("zeroes: %d", all(start, end - start, 0));
	memset(start, 1, end - start);
	say("odd end: %d", heap(end + 5) == end + 5);
	end[4] = 2;
	say("shrink: %d", heap(start + PAGE) == start + PAGE);
	say("grow again: %d", heap(end) == end);
	char *kept = (char *)(((uintptr_t)start + PAGE + PAGE - 1) / PAGE * PAGE);
	say("the rest is kept, what was returned is zero: %d", all(start, PAGE, 1) && all(kept, end - kept, 0));
	say("not below the start: %d", heap((char *)PAGE) == end);
	say("not beyond all addresses: %d", heap((char *)(1ul << 47)) == end);
	char *beyond = (char *)(((uintptr_t)end + PAGE - 1) / PAGE * PAGE) + 4 * PAGE;
	char *wall = mmap(beyond, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say("not over a mapping: %d", wall == beyond && heap(beyond + 2 * PAGE) == end);
	say("the end is where it was: %d", heap(NULL) == end);
	return 0;
}
