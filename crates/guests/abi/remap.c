/* mremap. */
#include "abi.h"
#include <sys/syscall.h>

static void fill(char *at, int pages)
{
	for (int i = 0; i < pages; i++)
		memset(at + i * PAGE, i + 1, PAGE);
}

static int filled(const char *at, int pages)
{
	for (int i = 0; i < pages; i++)
		if (!all(at + i * PAGE, PAGE, i + 1))
			return 0;
	return 1;
}

int main(void)
{
	char *room = memory(64), *at = room;
	fill(at, 4);
	say("shrink: %d", mremap(at, 4 * PAGE, 2 * PAGE, 0) == at && filled(at, 2));
	munmap(at + 2 * PAGE, 62 * PAGE);
	say("grow in place: %d", mremap(at, 2 * PAGE, 8 * PAGE, 0) == at);
	say("content and zeroes: %d", filled(at, 2) && all(at + 2 * PAGE, 6 * PAGE, 0));
	char *wall = mmap(at + 8 * PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	need(wall == at + 8 * PAGE, "mmap");
	tell("grow where there is no room", (long)mremap(at, 8 * PAGE, 16 * PAGE, 0));
	char *moved = mremap(at, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	say("move: %d", moved != MAP_FAILED && moved != at && filled(moved, 2) && all(moved + 2 * PAGE, 14 * PAGE, 0));
	tell("the old place is empty", madvise(at, PAGE, MADV_NORMAL));
	char *target = memory(16);
	char *fixed = mremap(moved, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + 4 * PAGE);
	say("move to a place: %d", fixed == target + 4 * PAGE && filled(fixed, 2));
	say("its neighbours: %d", all(target, 4 * PAGE, 0) && all(target + 8 * PAGE, 8 * PAGE, 0));
	/* glibc hands no place on without MREMAP_FIXED, not even none. */
	char *twice = (char *)syscall(SYS_mremap, fixed, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	say("leave the old place mapped: %d", twice != MAP_FAILED && filled(twice, 2) && all(fixed, 2 * PAGE, 0));
	tell("no length", (long)mremap(twice, PAGE, 0, MREMAP_MAYMOVE));
	tell("within a page", (long)mremap(twice + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	tell("fixed, yet not to be moved", (long)mremap(twice, PAGE, PAGE, MREMAP_FIXED, target));
	tell("onto itself", (long)mremap(target, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + PAGE));
	tell("unknown flags", (long)mremap(twice, PAGE, PAGE, 64));
	munmap(twice, 2 * PAGE);
	tell("nothing there", (long)mremap(twice, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	return 0;
}
