#include "../incident.h"

char *testcase_description = "A thread unmaps 64 MB while others fault";

#define LARGE (64 * MB)

static int file;

void testcase_prepare(unsigned long tasks)
{
    file = memfd_create("large", 0);
    for (size_t page = 0; page < LARGE; page += PAGE)
        assert(pwrite(file, "", 1, page) == 1);
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    if (nr == 0) {
        role("unmapper");
        EACH(10, iterations) {
            char *large = mmap(NULL, LARGE, PROT_READ, MAP_SHARED, file, 0);
            assert(large != MAP_FAILED);
            done(madvise(large, LARGE, MADV_POPULATE_READ));
            done(munmap(large, LARGE));
        }
        return;
    }
    char *own = map(4 * MB, PROT_READ | PROT_WRITE);
    EACH_REQUEST(iterations) {
        touch(own + request % 1024 * PAGE, PAGE);
        compute(20);
        if (request % 1024 == 1023)
            done(madvise(own, 4 * MB, MADV_DONTNEED));
    }
}
