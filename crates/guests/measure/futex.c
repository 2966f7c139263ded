/* Waking nobody: FUTEX_WAKE of a word for which no thread waits. */
#include "measure.h"
#include <sys/syscall.h>

/* musl has no names for it. */
enum { FUTEX_WAKE = 1, FUTEX_PRIVATE = 128 };

static _Thread_local int word;

static unsigned wake(void)
{
	ask(SYS_futex, (long)&word, FUTEX_WAKE | FUTEX_PRIVATE, 1);
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "futex", NULL, wake, 0 }, count, arguments);
}
