/* madvise and mincore. */
#include "abi.h"

static void resident(const char *what, char *at, int pages)
{
	unsigned char vector[16] = { 0 };
	char text[17] = { 0 };
	need(mincore(at, pages * PAGE, vector) == 0, "mincore");
	for (int i = 0; i < pages; i++)
		text[i] = '0' + (vector[i] & 1);
	say("%s: %s", what, text);
}

int main(void)
{
	char *at = memory(8);
	resident("untouched", at, 8);
	at[0] = at[3 * PAGE] = at[7 * PAGE] = 1;
	resident("three stores", at, 8);
	memset(at, 1, 8 * PAGE);
	resident("all", at, 8);
	tell("drop some", madvise(at + PAGE, 2 * PAGE, MADV_DONTNEED));
	resident("some dropped", at, 8);
	say("dropped pages are zero, others are not: %d",
	    all(at + PAGE, 2 * PAGE, 0) && all(at, PAGE, 1) && all(at + 3 * PAGE, 5 * PAGE, 1));
	tell("populate for reading", madvise(at, 8 * PAGE, MADV_WILLNEED));
	tell("free", madvise(at, 4 * PAGE, MADV_FREE));
	memset(at, 3, PAGE);
	say("a store after the advice stays: %d", all(at, PAGE, 3));
	tell("normal", madvise(at, PAGE, MADV_NORMAL));
	tell("sequential", madvise(at, PAGE, MADV_SEQUENTIAL));
	tell("unknown advice", madvise(at, PAGE, 9999));
	tell("within a page", madvise(at + 1, PAGE, MADV_DONTNEED));
	tell("no length", madvise(at, 0, MADV_DONTNEED));
	munmap(at + 2 * PAGE, PAGE);
	memset(at + 3 * PAGE, 4, PAGE);
	tell("over a hole", madvise(at, 8 * PAGE, MADV_DONTNEED));
	say("done all the same: %d", all(at + 3 * PAGE, 5 * PAGE, 0));
	unsigned char vector[8];
	tell("residency over a hole", mincore(at, 8 * PAGE, vector));
	tell("residency within a page", mincore(at + 1, PAGE, vector));
	tell("residency to nowhere", mincore(at, PAGE, (unsigned char *)nowhere));
	char *ready = map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_POPULATE);
	resident("populated", ready, 4);
	return 0;
}
