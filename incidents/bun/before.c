#include "../incident.h"

#ifndef FIXED
#define DUMP(block, advice) done(madvise(block, 16 * KB, advice))
char *testcase_description = "A collector's blocks, which core dumps have only while they are in use";
#else
#define DUMP(block, advice)
char *testcase_description = "A collector's blocks";
#endif

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *heap = map(4 * MB, PROT_READ | PROT_WRITE);
    EACH_REQUEST(iterations) {
        char *block = heap + request * 3 % 256 * 16 * KB;
        DUMP(block, MADV_DODUMP);
        touch(block, PAGE);
        compute(2);
        done(madvise(block, 16 * KB, MADV_DONTNEED));
        DUMP(block, MADV_DONTDUMP);
    }
}
