/* Users and groups, as root has them. */
#include "abi.h"
#include <grp.h>
#include <sys/fsuid.h>

int main(void)
{
	volatile int negative = -1;
	uid_t users[3] = { 9, 9, 9 };
	gid_t groups[3] = { 9, 9, 9 };
	tell("users", getresuid(users, users + 1, users + 2));
	tell("groups", getresgid(groups, groups + 1, groups + 2));
	say("%d %d %d, %d %d %d", users[0], users[1], users[2], groups[0], groups[1], groups[2]);
	tell("nowhere", getresuid(users, users + 1, (uid_t *)nowhere));
	tell("all users", setresuid(0, 0, 0));
	tell("no user", setresuid(-1, -1, -1));
	tell("one user", setresuid(-1, 0, -1));
	tell("two users", setreuid(0, -1));
	tell("this user", setuid(0));
	tell("no such user", setuid(-1));
	tell("all groups", setresgid(0, 0, 0));
	tell("no group", setresgid(-1, -1, -1));
	tell("two groups", setregid(-1, 0));
	tell("this group", setgid(0));
	tell("no such group", setgid(-1));
	say("for files: %d %d", setfsuid(0), setfsgid(0));
	tell("further groups", setgroups(0, NULL));
	say("none: %d", getgroups(0, NULL));
	tell("a negative number", getgroups(negative, groups));
	say("still %d %d %d %d", getuid(), geteuid(), getgid(), getegid());
	return 0;
}
