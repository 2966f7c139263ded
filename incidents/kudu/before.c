#include "../incident.h"

/* Free spans go back to the kernel all by one call, or a piece at a time. */
#ifndef FIXED
#define PIECE SPANS
char *testcase_description = "A thread gives 128 MB back by one call while others map memory";
#else
#define PIECE (256 * KB)
char *testcase_description = "A thread gives 128 MB back in pieces while others map memory";
#endif

#define SPANS (128 * MB)

void testcase(unsigned long long *iterations, unsigned long nr)
{
    if (nr == 0) {
        role("releaser");
        char *spans = map(SPANS, PROT_READ | PROT_WRITE);
        EACH(1, iterations) {
            touch(spans, SPANS);
            for (size_t at = 0; at < SPANS; at += PIECE)
                done(madvise(spans + at, PIECE, MADV_DONTNEED));
        }
        return;
    }
    EACH_REQUEST(iterations) {
        char *span = map(64 * KB, PROT_READ | PROT_WRITE);
        touch(span, 4 * PAGE);
        compute(400);
        done(munmap(span, 64 * KB));
    }
}
