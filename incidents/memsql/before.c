#include "../incident.h"

/* A column's file is mapped for each block that a query scans, or read into a buffer. */
#ifndef FIXED
char *testcase_description = "A scan maps a file for each block";
#else
char *testcase_description = "A scan reads each block into a buffer";
#endif

#define BLOCK (256 * KB)

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *buffer = map(BLOCK, PROT_READ | PROT_WRITE);
    int file = memfd_create("column", 0);
    done(ftruncate(file, BLOCK));
    touch(buffer, BLOCK);
    EACH_REQUEST(iterations) {
#ifndef FIXED
        char *block = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, file, 0);
        assert(block != MAP_FAILED);
        memcpy(buffer, block, BLOCK);
        done(munmap(block, BLOCK));
#else
        assert(pread(file, buffer, BLOCK, 0) == BLOCK);
#endif
        compute(40);
    }
}
