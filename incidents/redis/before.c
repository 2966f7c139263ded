#include "../incident.h"

char *testcase_description = "A store that serves writes while forks of it save snapshots";

#define STORE (32 * MB)

void testcase(unsigned long long *iterations, unsigned long nr)
{
    char *store = map(STORE, PROT_READ | PROT_WRITE);
    touch(store, STORE);
    EACH_REQUEST(iterations) {
        if (fork() == 0) {
            compute(200);
            _exit(0);
        }
        for (unsigned long key = 0; key < 100; key++) {
            touch(store + (key * 7919 + request * 31) % (STORE / PAGE) * PAGE, PAGE);
            compute(5);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    while (wait(NULL) > 0)
        ;
}
