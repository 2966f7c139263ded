#include "../incident.h"

/* jemalloc's dirty_decay_ms: 0 gives memory back at once, 10 s keeps what the next batch needs. */
#ifndef FIXED
char *testcase_description = "A batch of a query, in memory that the allocator gives back at once";
#else
char *testcase_description = "A batch of a query, in memory that the allocator keeps for a while";
#endif

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *arena = map(8 * MB, PROT_READ | PROT_WRITE);
    EACH_REQUEST(iterations) {
        char *buffer = arena + request % 4 * 128 * KB;
        touch(buffer, 128 * KB);
        compute(60);
#ifndef FIXED
        done(madvise(buffer, 128 * KB, MADV_DONTNEED));
#endif
    }
}
