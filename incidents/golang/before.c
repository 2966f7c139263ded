#include "../incident.h"

/* A fault that brings 2 MiB at once, within a request; or all of it at the start. */
#ifndef FIXED
#define PREPARE(arena)
#define GROW(span) done(madvise(span, 2 * MB, MADV_POPULATE_WRITE))
char *testcase_description = "A request that grows the heap by 2 MiB at once";
#else
#define PREPARE(arena) done(madvise(arena, 16 * MB, MADV_POPULATE_WRITE))
#define GROW(span)
char *testcase_description = "A request whose heap was made at the start";
#endif

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *arena = map(16 * MB, PROT_READ | PROT_WRITE);
    PREPARE(arena);
    EACH_REQUEST(iterations) {
        char *span = arena + request % 8 * 2 * MB;
        GROW(span);
        touch(span, 16 * PAGE);
        compute(100);
#ifndef FIXED
        done(madvise(span, 2 * MB, MADV_DONTNEED));
#endif
    }
}
