#include "../incident.h"

char *testcase_description = "Threads touch new memory all at once";

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *own = map(8 * MB, PROT_READ | PROT_WRITE);
    EACH_REQUEST(iterations)
        touch(own + request % 8 * MB, MB);
}
