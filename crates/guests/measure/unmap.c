/* munmap of 512 touched pages: the length for each of them. */
#include "measure.h"

enum { PAGES = 512 };

static uint64_t sample(int index)
{
	(void)index;
	volatile char *pages = map(PAGES * PAGE);
	for (int i = 0; i < PAGES; i++)
		pages[i * PAGE] = 1;
	uint64_t start = now();
	check(munmap((void *)pages, PAGES * PAGE) == 0, "munmap");
	return (now() - start) / PAGES;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "unmap", sample, NULL, 0 }, count, arguments);
}
