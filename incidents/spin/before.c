#include "../incident.h"

#ifndef FIXED
char *testcase_description = "A request: an instance on demand, with memory and a stack";
#else
char *testcase_description = "A request: an instance of a pool";
#endif

static void reserve(char **memory, char **stack)
{
    *memory = map(6 * GB, PROT_NONE);
    done(mprotect(*memory, 2 * MB, PROT_READ | PROT_WRITE));
    *stack = map(2 * MB, PROT_NONE);
    done(mprotect(*stack + PAGE, 2 * MB - PAGE, PROT_READ | PROT_WRITE));
}

static void serve(char *memory, char *stack)
{
    touch(memory, 16 * PAGE);
    touch(stack + 2 * MB - 4 * PAGE, 4 * PAGE);
    compute(80);
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *memory, *stack;
#ifndef FIXED
    EACH_REQUEST(iterations) {
        reserve(&memory, &stack);
        serve(memory, stack);
        done(munmap(stack, 2 * MB));
        done(munmap(memory, 6 * GB));
    }
#else
    reserve(&memory, &stack);
    EACH_REQUEST(iterations) {
        serve(memory, stack);
        done(madvise(memory, 64 * KB, MADV_DONTNEED));
    }
#endif
}
