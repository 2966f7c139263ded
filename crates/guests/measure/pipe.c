/* A byte through a pipe and back, within one process: two writes and two reads that do not sleep. */
#include "measure.h"

static _Thread_local int there[2], back[2];

static void pass(int *through)
{
	char byte = 0;
	check(write(through[1], &byte, 1) == 1, "write");
	check(read(through[0], &byte, 1) == 1, "read");
}

static unsigned round_trip(void)
{
	if (!there[1])
		check(pipe(there) == 0 && pipe(back) == 0, "pipe");
	pass(there);
	pass(back);
	return 1;
}

static uint64_t sample(int index)
{
	(void)index;
	if (index == 0)
		round_trip();
	uint64_t start = now();
	round_trip();
	return now() - start;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "pipe", sample, round_trip, 1 }, count, arguments);
}
