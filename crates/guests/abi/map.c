/* Mapping: what the sequences of the oracle cannot say, such as unknown flags and amounts of mappings. */
#include "abi.h"
#include <sys/syscall.h>

static void errors(void)
{
	char *at = memory(2);
	tell("neither shared nor private", (long)mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
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
	tell("unknown rights", mprotect(at, PAGE, 1 << 20));
	tell("unknown advice", madvise(at, PAGE, 9999));
	tell("unknown flags of a move", (long)mremap(at, PAGE, PAGE, 64));
	tell("residency to nowhere", mincore(at, PAGE, (unsigned char *)nowhere));
	char *low = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	say("below 2 GiB: %d", (uintptr_t)low < 1ul << 31);
}

/* Advice over a hole fails, and is followed all the same. */
static void holes(void)
{
	char *at = memory(8);
	memset(at, 1, 8 * PAGE);
	munmap(at + 2 * PAGE, PAGE);
	tell("drop over a hole", madvise(at, 8 * PAGE, MADV_DONTNEED));
	say("done: %d", all(at, 2 * PAGE, 0) && all(at + 3 * PAGE, 5 * PAGE, 0));
	unsigned char vector[8];
	tell("residency over a hole", mincore(at, 8 * PAGE, vector));
	tell("rights over a hole", mprotect(at, 8 * PAGE, PROT_READ));
}

static char *heap(char *end)
{
	return (char *)syscall(SYS_brk, end);
}

/* Ends that the heap cannot have; C libraries hide the call. */
static void heaps(void)
{
	char *end = heap(NULL);
	say("not below the start: %d", heap((char *)PAGE) == end);
	say("not beyond all addresses: %d", heap((char *)(1ul << 47)) == end);
	char *beyond = (char *)(((uintptr_t)end + PAGE - 1) / PAGE * PAGE) + 4 * PAGE;
	char *wall = mmap(beyond, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say("not over a mapping: %d", wall == beyond && heap(beyond + 2 * PAGE) == end);
	say("the end is where it was: %d", heap(NULL) == end);
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
	errors();
	holes();
	heaps();
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
