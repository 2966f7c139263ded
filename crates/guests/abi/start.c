/* What a program begins with: arguments, environment, auxiliary vector, data, thread-local data, the stack. */
#include "abi.h"
#include <elf.h>
#include <sys/auxv.h>

static int initialised = 42;
static char zeroed[3 * PAGE];
static _Thread_local int own = 7;
extern char **environ;

static void auxiliary(void)
{
	say("page size %lu", getauxval(AT_PAGESZ));
	say("secure %lu", getauxval(AT_SECURE));
	say("ticks %lu", getauxval(AT_CLKTCK));
	say("entry %s", getauxval(AT_ENTRY) ? "known" : "unknown");
	say("name %s", getauxval(AT_EXECFN) ? "known" : "unknown");
	say("headers of %lu bytes", getauxval(AT_PHENT));
	const Elf64_Phdr *header = (const Elf64_Phdr *)getauxval(AT_PHDR);
	int loads = 0;
	for (unsigned long i = 0; header && i < getauxval(AT_PHNUM); i++)
		loads += header[i].p_type == PT_LOAD;
	say("%s parts to load", loads >= 2 ? "several" : "few");
	const char *random = (const char *)getauxval(AT_RANDOM);
	say("random bytes %s", random && !all(random, 16, 0) ? "there" : "missing");
	say("user %s", getauxval(AT_UID) == getuid() && getauxval(AT_EGID) == getegid() ? "agrees" : "differs");
}

int main(int count, char **arguments)
{
	say("%d arguments", count);
	for (int i = 0; i < count; i++)
		say("argument %d: <%s>", i, arguments[i]);
	say("%s after the last", arguments[count] ? "something" : "nothing");
	for (char **one = environ; *one; one++)
		say("environment: <%s>", *one);
	auxiliary();
	say("data %d, zeroes %d, thread-local %d", initialised, all(zeroed, sizeof zeroed, 0), own);
	char *large = __builtin_alloca(1 << 20);
	memset(large, 1, 1 << 20);
	say("stack grows: %d", all(large, 1 << 20, 1));
	char *heap = malloc(3 << 20);
	memset(heap, 2, 3 << 20);
	say("heap grows: %d", all(heap, 3 << 20, 2));
	double sum = 0;
	for (int i = 1; i <= 100; i++)
		sum += 1.0 / i;
	say("floating point: %.12f", sum);
	return 3;
}
