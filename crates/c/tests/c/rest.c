/* Counters, threads that come and go, keys of threads, fork. Usage: rest ROUNDS */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { LIMIT = 1000 };
/* The highest limit. */
#define MOST (UINT64_MAX / 2)

static long rounds;
static scalevm_counter_t counter = SCALEVM_COUNTER_INIT(LIMIT);
static scalevm_counter_t small;
static atomic_long used;

static void *reserves(void *number)
{
    uint64_t seed = (uint64_t)(intptr_t)number * 2 + 1, own = 0;
    for (long i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t n = (seed >> 33) % 300;
        if (own >= n && seed >> 63) {
            atomic_fetch_sub(&used, (long)n);
            scalevm_counter_release(&counter, n);
            own -= n;
        } else if (scalevm_counter_reserve(&counter, n)) {
            CHECK(atomic_fetch_add(&used, (long)n) + (long)n <= LIMIT);
            own += n;
        }
    }
    atomic_fetch_sub(&used, (long)own);
    scalevm_counter_release(&counter, own);
    return NULL;
}

static void counters(void)
{
    CHECK(scalevm_counter_used(&counter) == 0);
    CHECK(!scalevm_counter_reserve(&counter, LIMIT + 1));
    CHECK(scalevm_counter_reserve(&counter, LIMIT));
    CHECK(!scalevm_counter_reserve(&counter, 1));
    CHECK(scalevm_counter_used(&counter) == LIMIT);
    scalevm_counter_release(&counter, LIMIT);
    in_threads(reserves);
    CHECK(scalevm_counter_used(&counter) == 0);
    CHECK(scalevm_counter_reserve(&counter, LIMIT));
    scalevm_counter_destroy(&counter);
    CHECK(scalevm_counter_used(&counter) == 0);
    scalevm_counter_destroy(&counter);
    CHECK(scalevm_counter_init(&small, 7, 1025) == EINVAL);
    CHECK(scalevm_counter_init(&small, MOST + 1, 0) == EINVAL);
    CHECK(scalevm_counter_init(&small, UINT64_MAX, 0) == EINVAL);
    CHECK(scalevm_counter_init(&small, MOST, 2) == 0);
    CHECK(scalevm_counter_reserve(&small, MOST) && !scalevm_counter_reserve(&small, 1));
    CHECK(scalevm_counter_used(&small) == MOST);
    scalevm_counter_release(&small, MOST);
    CHECK(scalevm_counter_used(&small) == 0);
    scalevm_counter_destroy(&small);
    CHECK(scalevm_counter_init(&small, 7, THREADS + 1) == 0);
    CHECK(scalevm_counter_reserve(&small, 7) && !scalevm_counter_reserve(&small, 1));
    scalevm_counter_release(&small, 7);
    scalevm_counter_destroy(&small);
}

static scalevm_epoch_t epoch;
static scalevm_clh_t clh = SCALEVM_CLH_INIT;
static atomic_int calls;

static void called(scalevm_epoch_entry_t *entry)
{
    free(entry);
    atomic_fetch_add(&calls, 1);
}

static void *uses_all(void *unused)
{
    (void)unused;
    scalevm_clh_held_t held;
    scalevm_clh_lock(&clh, &held);
    scalevm_clh_unlock(&clh, &held);
    scalevm_epoch_enter(&epoch);
    scalevm_epoch_exit(&epoch);
    scalevm_epoch_entry_t *entry = malloc(sizeof *entry);
    CHECK(entry != NULL);
    scalevm_epoch_call(&epoch, entry, called);
    return NULL;
}

/* Far more threads than places, one after the other: places of threads that have ended are used again. */
static void come_and_go(void)
{
    CHECK(scalevm_epoch_init(&epoch, 1025) == EINVAL);
    CHECK(scalevm_epoch_init(&epoch, 2) == 0);
    for (int i = 0; i < 1500; i++)
        in_thread(uses_all, NULL);
    scalevm_epoch_barrier(&epoch);
    CHECK(atomic_load(&calls) == 1500);
    CHECK(scalevm_epoch_destroy(&epoch) == 0);
    CHECK(scalevm_clh_destroy(&clh) == 0);
}

static pthread_key_t key;

static void late(void *unused)
{
    (void)unused;
    uses_all(NULL);
}

static void *leaves_late(void *unused)
{
    CHECK(pthread_setspecific(key, &key) == 0);
    return uses_all(unused);
}

/* Destructors of other keys use the library when the thread's place may be gone. */
static void keys(void)
{
    CHECK(scalevm_epoch_init(&epoch, 2) == 0);
    CHECK(pthread_key_create(&key, late) == 0);
    atomic_store(&calls, 0);
    for (int i = 0; i < 100; i++)
        in_thread(leaves_late, NULL);
    CHECK(scalevm_epoch_destroy(&epoch) == 0);
    CHECK(atomic_load(&calls) == 200);
    CHECK(scalevm_clh_destroy(&clh) == 0);
}

/* The only thread forks: the child may use everything. */
static void forks(void)
{
    CHECK(scalevm_epoch_init(&epoch, 0) == 0);
    scalevm_epoch_enter(&epoch);
    pid_t child = fork();
    CHECK(child >= 0);
    scalevm_epoch_exit(&epoch);
    scalevm_epoch_wait(&epoch);
    uses_all(NULL);
    CHECK(scalevm_epoch_destroy(&epoch) == 0);
    CHECK(scalevm_clh_destroy(&clh) == 0);
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    rounds = atol(argv[1]);
    counters();
    come_and_go();
    keys();
    forks();
    return 0;
}
