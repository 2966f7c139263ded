#include "../incident.h"

/* The allocator finds no extent that fits, and splits one that it has given back; or it finds one,
 * and gives back one in eight. */
#ifndef FIXED
#define GIVEN_BACK 1
char *testcase_description = "A block of an aggregation: a table that is faulted anew";
#else
#define GIVEN_BACK 8
char *testcase_description = "A block of an aggregation: a table that fits where one was freed";
#endif

static char *arenas[1024];

void testcase_prepare(unsigned long tasks)
{
    for (unsigned long nr = 0; nr < tasks; nr++)
        arenas[nr] = map(4 * MB, PROT_READ | PROT_WRITE);
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *table = arenas[nr] + 2 * MB;
    EACH_REQUEST(iterations) {
        touch(table, 512 * KB);
        compute(1600);
        if (request % GIVEN_BACK == 0)
            done(madvise(table, 512 * KB, MADV_DONTNEED));
    }
}
