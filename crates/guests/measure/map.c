/* mmap and munmap of 128 MiB that nobody touches. */
#include "measure.h"

enum { LENGTH = 128 << 20 };

static unsigned map_and_unmap(void)
{
	check(munmap(map(LENGTH), LENGTH) == 0, "munmap");
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "map", NULL, map_and_unmap, 0 }, count, arguments);
}
