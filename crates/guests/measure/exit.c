/* fork, exit and wait: a child that ends at once, and runs no other program. */
#include "measure.h"

static unsigned child(void)
{
	pid_t made = fork();
	check(made >= 0, "fork");
	if (made == 0)
		_exit(0);
	reap(made);
	return 1;
}

int main(int count, char **arguments)
{
	return measure(&(struct subject){ "exit", NULL, child, 1 }, count, arguments);
}
