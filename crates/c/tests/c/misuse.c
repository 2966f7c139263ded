/* Misuse that ends the process with one line. Usage: misuse CASE */
#include "check.h"

static scalevm_epoch_t epoch = SCALEVM_EPOCH_INIT;
static scalevm_counter_t counter = SCALEVM_COUNTER_INIT(10);
static scalevm_counter_t high = SCALEVM_COUNTER_INIT((uint64_t)1 << 63);
static scalevm_counter_t highest = SCALEVM_COUNTER_INIT(((uint64_t)1 << 63) - 1);

static void *stays_inside(void *unused)
{
    scalevm_epoch_enter(&epoch);
    return unused;
}

static void *enters(void *unused)
{
    scalevm_epoch_enter(&epoch);
    scalevm_epoch_exit(&epoch);
    return unused;
}

static void waits(scalevm_epoch_entry_t *entry)
{
    (void)entry;
    scalevm_epoch_barrier(&epoch);
}

#define UNLOCK(type, ...)                                \
    if (strcmp(argv[1], #type) == 0) {                   \
        scalevm_##type##_t lock = __VA_ARGS__;           \
        scalevm_##type##_unlock(&lock);                  \
    }

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    UNLOCK(tas, SCALEVM_TAS_INIT)
    UNLOCK(ticket, SCALEVM_TICKET_INIT)
    UNLOCK(conbo, SCALEVM_CONBO_INIT)
    UNLOCK(k42, SCALEVM_K42_INIT)
    UNLOCK(mutex, SCALEVM_MUTEX_INIT)
    if (strcmp(argv[1], "mcs") == 0) {
        scalevm_mcs_t lock = SCALEVM_MCS_INIT;
        scalevm_mcs_node_t node;
        scalevm_mcs_unlock(&lock, &node);
    }
    if (strcmp(argv[1], "clh") == 0) {
        scalevm_clh_t lock = SCALEVM_CLH_INIT;
        scalevm_clh_held_t held;
        scalevm_clh_lock(&lock, &held);
        scalevm_clh_unlock(&lock, &held);
        scalevm_clh_unlock(&lock, &held);
    }
    scalevm_rwlock_t rwlock = SCALEVM_RWLOCK_INIT;
    if (strcmp(argv[1], "rdunlock") == 0)
        scalevm_rwlock_rdunlock(&rwlock);
    if (strcmp(argv[1], "wrunlock") == 0) {
        scalevm_rwlock_rdlock(&rwlock);
        scalevm_rwlock_wrunlock(&rwlock);
    }
    if (strcmp(argv[1], "exit") == 0)
        scalevm_epoch_exit(&epoch);
    if (strcmp(argv[1], "wait") == 0) {
        scalevm_epoch_enter(&epoch);
        scalevm_epoch_wait(&epoch);
    }
    if (strcmp(argv[1], "barrier") == 0) {
        scalevm_epoch_enter(&epoch);
        scalevm_epoch_barrier(&epoch);
    }
    if (strcmp(argv[1], "callback") == 0) {
        scalevm_epoch_entry_t entry;
        scalevm_epoch_call(&epoch, &entry, waits);
        scalevm_epoch_barrier(&epoch);
    }
    if (strcmp(argv[1], "passed") == 0)
        scalevm_epoch_passed(&epoch, 0);
    if (strcmp(argv[1], "future") == 0) {
        /* A moment of the same form that has not come yet. */
        scalevm_epoch_enter(&epoch);
        scalevm_epoch_passed(&epoch, 16 * scalevm_epoch_snapshot(&epoch));
    }
    if (strcmp(argv[1], "readers") == 0) {
        /* The state after 2^28 - 1 calls; the three lowest bits are not part of the count. */
        scalevm_rwlock_t full = {((1u << 28) - 1) << 3};
        CHECK(scalevm_rwlock_trywrlock(&full) == EBUSY);
        scalevm_rwlock_rdlock(&full);
    }
    if (strcmp(argv[1], "thread") == 0)
        in_thread(stays_inside, NULL);
    if (strcmp(argv[1], "threads") == 0) {
        CHECK(scalevm_epoch_init(&epoch, 1) == 0);
        enters(NULL);
        in_thread(enters, NULL);
    }
    if (strcmp(argv[1], "release") == 0)
        scalevm_counter_release(&counter, 11);
    if (strcmp(argv[1], "releases") == 0)
        scalevm_counter_release(&highest, UINT64_MAX);
    if (strcmp(argv[1], "limit") == 0)
        scalevm_counter_reserve(&high, 1);
    /* One fewer than too many. */
    scalevm_rwlock_t nearly = {((1u << 28) - 2) << 3};
    scalevm_rwlock_rdlock(&nearly);
    return 0;
}
