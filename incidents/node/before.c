#include "../incident.h"

/* With the fix a helper that has no heap yet starts the processes. */
#ifndef FIXED
#define HEAP (32 * MB)
char *testcase_description = "A large process forks while its pool of threads allocates";
#else
#define HEAP (1 * MB)
char *testcase_description = "A small helper forks for a large process";
#endif

void testcase(unsigned long long *iterations, unsigned long nr)
{
    if (nr > 0) {
        role("pool");
        EACH(30 * REQUESTS, iterations) {
            char *buffer = map(64 * KB, PROT_READ | PROT_WRITE);
            touch(buffer, 64 * KB);
            compute(60);
            done(munmap(buffer, 64 * KB));
        }
        return;
    }
    role("loop");
    char *heap = map(HEAP, PROT_READ | PROT_WRITE);
    touch(heap, HEAP);
    EACH_REQUEST(iterations) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        assert(waitpid(child, NULL, 0) == child);
        compute(100);
    }
}
