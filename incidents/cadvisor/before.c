#include "../incident.h"

char *testcase_description = "Requests to an index in memory, parts of which are mapped anew";

#define INDEX (128 * MB)

void testcase(unsigned long long *iterations, unsigned long nr)
{
    if (nr == 0) {
        role("loader");
        char *index = map(INDEX, PROT_READ | PROT_WRITE);
        done(madvise(index, INDEX, MADV_POPULATE_WRITE));
        EACH_REQUEST(iterations)
            compute(110);
        return;
    }
    char *own = map(4 * MB, PROT_READ | PROT_WRITE);
    EACH_REQUEST(iterations) {
        touch(own + request % 256 * 4 * PAGE, 4 * PAGE);
        compute(100);
        if (request % 8 == 7) {
            char *part = map(256 * KB, PROT_READ | PROT_WRITE);
            touch(part, PAGE);
            done(munmap(part, 256 * KB));
        }
    }
}
