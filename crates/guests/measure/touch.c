/* The first touch of a page. By the second: of each page of 2 MiB, which are mapped before and unmapped after. */
#include "measure.h"

enum { LENGTH = 2 << 20 };

static uint64_t sample(int index)
{
	static volatile char *pages;
	if (!pages)
		pages = map((size_t)SAMPLES * PAGE);
	uint64_t start = now();
	pages[(size_t)index * PAGE] = 1;
	return now() - start;
}

static unsigned touch(void)
{
	volatile char *pages = map(LENGTH);
	for (int at = 0; at < LENGTH; at += PAGE)
		pages[at] = 1;
	check(munmap((void *)pages, LENGTH) == 0, "munmap");
	return LENGTH / PAGE;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "touch", sample, touch, 0 }, count, arguments);
}
