/* Mapping and unmapping. */
#include "abi.h"

static void content(void)
{
	char *at = memory(4);
	say("zeroes: %d", all(at, 4 * PAGE, 0));
	memset(at, 1, 4 * PAGE);
	tell("unmap the second page", munmap(at + PAGE, PAGE));
	tell("unmap it again", munmap(at + PAGE, PAGE));
	say("neighbours keep theirs: %d", all(at, PAGE, 1) && all(at + 2 * PAGE, 2 * PAGE, 1));
	char *hole = mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say("put where it was: %d", hole == at + PAGE && all(hole, PAGE, 0));
	mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say("replaced: %d", all(at, 2 * PAGE, 0) && all(at + 2 * PAGE, 2 * PAGE, 1));
	tell("unmap all", munmap(at, 4 * PAGE));
}

static void places(void)
{
	char *at = memory(16), *wish = at + 4 * PAGE;
	munmap(wish, 4 * PAGE);
	char *got = mmap(wish, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("a free wish is granted: %d", got == wish);
	got = mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("another is not: %d", got != at && got != MAP_FAILED);
	got = mmap(wish, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	tell("no replacement", (long)got);
	char *low = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	say("below 2 GiB: %d", (uintptr_t)low < 1ul << 31);
}

static void errors(void)
{
	char *at = memory(2);
	tell("no length", (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	tell("neither shared nor private", (long)mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
	tell("not a page's address", (long)mmap(at + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	tell("no file", (long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 77, 0));
	tell("no file and no length", (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE, 77, 0));
	int file = open("/dev/zero", O_WRONLY);
	tell("a file that is not to be read", (long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0));
	tell("and no length", (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE, file, 0));
	close(file);
	enum { UNKNOWN = 1 << 23 };
	file = open("map-data", O_RDWR | O_CREAT, 0600);
	need(ftruncate(file, PAGE) == 0, "ftruncate");
	tell("unknown flag", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED | UNKNOWN, file, 0));
	tell("validated", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE, file, 0));
	tell("unknown flag, validated", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | UNKNOWN, file, 0));
	tell("nothing to validate", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0));
	close(file);
	unlink("map-data");
	tell("protect the first pages", mprotect(NULL, PAGE + 1, PROT_READ));
	unsigned char vector[1];
	tell("residency of the first pages", mincore(NULL, PAGE, vector));
	tell("residency of all", mincore(at, -(uintptr_t)at - PAGE, vector));
	tell("beyond all addresses", (long)mmap(NULL, 1ul << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	tell("unmap no length", munmap(at, 0));
	tell("unmap within a page", munmap(at + 8, PAGE));
	tell("unmap the kernel", munmap((void *)(1ul << 63), PAGE));
}

/* Many mappings, of different rights so that they stay apart. */
static void many(void)
{
	enum { COUNT = 1000 };
	char *at = memory(COUNT);
	for (int i = 0; i < COUNT; i += 2)
		need(mprotect(at + i * PAGE, PAGE, PROT_READ) == 0, "mprotect");
	for (int i = 1; i < COUNT; i += 2)
		at[i * PAGE] = i;
	long sum = 0;
	for (int i = 0; i < COUNT; i++)
		sum += at[i * PAGE];
	say("sum over %d mappings: %ld", COUNT, sum);
	tell("unmap them at once", munmap(at, COUNT * PAGE));
}

int main(void)
{
	content();
	places();
	errors();
	many();
	size_t large = 1ul << 40;
	char *sparse = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	need(sparse != MAP_FAILED, "a TiB");
	for (size_t i = 0; i < 16; i++)
		sparse[i * (large / 16)] = i;
	long sum = 0;
	for (size_t i = 0; i < 16; i++)
		sum += sparse[i * (large / 16)];
	say("sum over a TiB: %ld", sum);
	tell("unmap it", munmap(sparse, large));
	return 0;
}
