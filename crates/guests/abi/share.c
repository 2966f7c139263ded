/* Memory of processes after a fork: copies, and what they share. */
#include "abi.h"

static char *shared, *private, *cut;

static int write_both(void)
{
	memset(shared, 2, 4 * PAGE);
	memset(private, 2, 4 * PAGE);
	return all(private, 4 * PAGE, 2);
}

static int read_only(void)
{
	return all(shared, 4 * PAGE, 2) && all(private, 4 * PAGE, 1);
}

/* A child of a child stores; its parent must not see it. */
static int nested(void)
{
	private[0] = 9;
	pid_t child = spawn(write_both);
	int status;
	waitpid(child, &status, 0);
	return WEXITSTATUS(status) == 1 && private[0] == 9 && all(private + 1, PAGE - 1, 1);
}

static int unmap_there(void)
{
	munmap(cut, 2 * PAGE);
	munmap(shared, PAGE);
	return mprotect(private, PAGE, PROT_READ) == 0;
}

int main(void)
{
	shared = map(4, PROT_READ | PROT_WRITE, MAP_SHARED);
	private = memory(4);
	cut = memory(4);
	memset(private, 1, 4 * PAGE);
	memset(cut, 5, 4 * PAGE);
	reap("child stores", spawn(write_both));
	say("shared: %d, private: %d", all(shared, 4 * PAGE, 2), all(private, 4 * PAGE, 1));
	reap("child loads", spawn(read_only));
	reap("grandchild stores", spawn(nested));
	reap("child unmaps and protects", spawn(unmap_there));
	private[0] = 3;
	say("this process has all as it was: %d", all(cut, 4 * PAGE, 5) && shared[0] == 2 && private[0] == 3);
	tell("leave it out of forks", madvise(cut, 4 * PAGE, MADV_DONTFORK));
	pid_t child = fork();
	if (child == 0)
		_exit(madvise(cut, PAGE, MADV_NORMAL) == -1 && errno == ENOMEM);
	reap("child lacks it", child);
	return 0;
}
