#include "../incident.h"

/* numa_balancing takes the rights to a busy thread's pages away, so that faults tell which node
 * uses them: a walk of its page tables, on the thread's own time, and then the faults. */
#ifndef FIXED
char *testcase_description = "A dispatcher whose memory is scanned for NUMA hints";
#else
char *testcase_description = "A dispatcher whose memory is left alone";
#endif

#define WORK (16 * MB)

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *memory = map(WORK, PROT_READ | PROT_WRITE);
    touch(memory, WORK);
    EACH_REQUEST(iterations) {
#ifndef FIXED
        if (request % 8 == 7) {
            done(mprotect(memory, WORK, PROT_NONE));
            done(mprotect(memory, WORK, PROT_READ | PROT_WRITE));
        }
#endif
        touch(memory + request % 16 * MB, MB);
        compute(200);
    }
}
