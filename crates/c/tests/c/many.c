/* More threads than an epoch admits use locks at once. Usage: many */
#include "check.h"

enum { MANY = 1100 };

static scalevm_adaptive_t lock = SCALEVM_ADAPTIVE_INIT;
static pthread_barrier_t all;
static int sum;

static void *locks(void *unused)
{
    CHECK(scalevm_adaptive_lock(&lock) == 0);
    CHECK(scalevm_adaptive_owned(&lock));
    sum++;
    CHECK(scalevm_adaptive_unlock(&lock) == 0);
    pthread_barrier_wait(&all);
    return unused;
}

int main(void)
{
    static pthread_t threads[MANY];
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small) == 0);
    CHECK(pthread_attr_setstacksize(&small, 65536) == 0);
    CHECK(pthread_barrier_init(&all, NULL, MANY) == 0);
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_create(&threads[i], &small, locks, NULL) == 0);
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(sum == MANY);
    return 0;
}
