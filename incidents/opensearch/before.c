#include "../incident.h"

#ifndef FIXED
#define ADVISE(segment, advice) done(madvise(segment, SEGMENT, advice))
char *testcase_description = "A search: advice for the segment, and looks if it is in memory";
#else
#define ADVISE(segment, advice)
char *testcase_description = "A search: looks if the segment is in memory";
#endif

#define SEGMENT (1 * MB)

void testcase(unsigned long long *iterations, unsigned long nr)
{
    unsigned char pages[16];
    int file = memfd_create("index", 0);
    done(ftruncate(file, 16 * SEGMENT));
    char *index = mmap(NULL, 16 * SEGMENT, PROT_READ, MAP_SHARED, file, 0);
    assert(index != MAP_FAILED);
    EACH_REQUEST(iterations) {
        char *segment = index + request % 16 * SEGMENT;
        ADVISE(segment, MADV_SEQUENTIAL);
        for (int part = 0; part < 4; part++) {
            done(mincore(segment + part * 64 * KB, 64 * KB, pages));
            compute(5);
        }
        ADVISE(segment, MADV_NORMAL);
    }
}
