#include "../incident.h"

#ifndef FIXED
char *testcase_description = "An instance of a WebAssembly module: map, make accessible, unmap";
#else
char *testcase_description = "An instance of a WebAssembly module, in memory that is used again";
#endif

static char *reserve(void)
{
    char *memory = map(6 * GB, PROT_NONE);
    done(mprotect(memory, 64 * KB, PROT_READ | PROT_WRITE));
    return memory;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
#ifndef FIXED
    EACH_REQUEST(iterations) {
        char *memory = reserve();
        touch(memory, PAGE);
        compute(4);
        done(munmap(memory, 6 * GB));
    }
#else
    char *memory = reserve();
    EACH_REQUEST(iterations) {
        touch(memory, PAGE);
        compute(4);
        done(madvise(memory, 64 * KB, MADV_DONTNEED));
    }
#endif
}
