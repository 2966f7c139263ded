/* fork, exec and wait of a small static process: this program, which returns at once. */
#include "measure.h"

static const char *self;

static unsigned spawn(void)
{
	char *child[] = { "fork", "child", NULL }, *nothing[] = { NULL };
	pid_t made = fork();
	check(made >= 0, "fork");
	if (made == 0) {
		execve(self, child, nothing);
		_exit(1);
	}
	reap(made);
	return 1;
}

int main(int count, char **arguments)
{
	if (count == 2)
		return 0;
	self = arguments[0];
	return measure(&(struct subject){ "fork", NULL, spawn, 1 }, count, arguments);
}
