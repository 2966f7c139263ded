/* Two processes on one CPU hand a byte to each other through pipes: two context switches, each with a write, and a read
 * that sleeps. The length is that of one. */
#include "measure.h"

static int to_partner[2], to_self[2];

static void answer(void)
{
	char byte;
	while (read(to_partner[0], &byte, 1) == 1 && write(to_self[1], &byte, 1) == 1)
		;
	_exit(0);
}

static unsigned hand_over(void)
{
	if (!to_self[1]) {
		check(pipe(to_partner) == 0 && pipe(to_self) == 0, "pipe");
		pid_t partner = fork();
		check(partner >= 0, "fork");
		if (partner == 0) {
			close(to_partner[1]);
			answer();
		}
		close(to_partner[0]);
	}
	char byte = 0;
	check(write(to_partner[1], &byte, 1) == 1 && read(to_self[0], &byte, 1) == 1, "pipe");
	return 2;
}

static uint64_t sample(int index)
{
	if (index == 0)
		hand_over();
	uint64_t start = now();
	hand_over();
	return (now() - start) / 2;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "switch", sample, hand_over, 1 }, count, arguments);
}
