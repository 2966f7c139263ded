/* Each function of the locks; exclusion under 8 threads, in the manner of ck_spinlock's validate.h.
 * Usage: locks ROUNDS */
#include "check.h"

static long rounds;

/* Written and read under the lock only: plain, so that ThreadSanitizer looks for the order. */
static uint64_t shared[8];

static void section(void)
{
    uint64_t before = shared[0];
    for (int i = 0; i < 8; i++) {
        CHECK(shared[i] == before);
        shared[i]++;
    }
}

/* A test of a lock. Its functions take the lock only, or the lock and `node`. */
#define TEST(type, Node, WITH)                                                \
    static scalevm_##type##_t type = TYPE_INIT_##type;                        \
    static void *type##_turns(void *number)                                   \
    {                                                                         \
        Node node;                                                            \
        (void)node;                                                           \
        for (long i = 0; i < rounds; i++) {                                   \
            if ((i + (intptr_t)number) % 16 == 0) {                           \
                while (scalevm_##type##_trylock(WITH(type)) == EBUSY)         \
                    sched_yield();                                            \
            } else {                                                          \
                scalevm_##type##_lock(WITH(type));                            \
            }                                                                 \
            section();                                                        \
            scalevm_##type##_unlock(WITH(type));                              \
        }                                                                     \
        return NULL;                                                          \
    }                                                                         \
    static void *type##_busy(void *unused)                                    \
    {                                                                         \
        Node node;                                                            \
        (void)node;                                                           \
        (void)unused;                                                         \
        CHECK(scalevm_##type##_trylock(WITH(type)) == EBUSY);                 \
        CHECK(scalevm_##type##_locked(&type));                                \
        return NULL;                                                          \
    }                                                                         \
    static void type##_test(void)                                             \
    {                                                                         \
        Node node;                                                            \
        (void)node;                                                           \
        memset(shared, 0, sizeof shared);                                     \
        CHECK(!scalevm_##type##_locked(&type));                               \
        scalevm_##type##_lock(WITH(type));                                    \
        in_thread(type##_busy, NULL);                                         \
        scalevm_##type##_unlock(WITH(type));                                  \
        CHECK(!scalevm_##type##_locked(&type));                               \
        CHECK(scalevm_##type##_trylock(WITH(type)) == 0);                     \
        in_thread(type##_busy, NULL);                                         \
        scalevm_##type##_unlock(WITH(type));                                  \
        in_threads(type##_turns);                                             \
        CHECK(shared[0] == (uint64_t)rounds * THREADS);                       \
        scalevm_##type##_t other;                                             \
        memset(&other, 0xff, sizeof other);                                   \
        scalevm_##type##_init(&other);                                        \
        CHECK(!scalevm_##type##_locked(&other));                              \
        CHECK(scalevm_##type##_trylock(WITH(other)) == 0);                    \
        CHECK(scalevm_##type##_locked(&other));                               \
        scalevm_##type##_unlock(WITH(other));                                 \
        DESTROY_##type(&other);                                               \
    }

#define TYPE_INIT_tas SCALEVM_TAS_INIT
#define TYPE_INIT_ticket SCALEVM_TICKET_INIT
#define TYPE_INIT_conbo SCALEVM_CONBO_INIT
#define TYPE_INIT_mcs SCALEVM_MCS_INIT
#define TYPE_INIT_clh SCALEVM_CLH_INIT
#define TYPE_INIT_k42 SCALEVM_K42_INIT
#define TYPE_INIT_mutex SCALEVM_MUTEX_INIT
#define TYPE_INIT_adaptive SCALEVM_ADAPTIVE_INIT
#define DESTROY_tas(lock)
#define DESTROY_ticket(lock)
#define DESTROY_conbo(lock)
#define DESTROY_mcs(lock)
#define DESTROY_clh(lock) CHECK(scalevm_clh_destroy(lock) == 0)
#define DESTROY_k42(lock)
#define DESTROY_mutex(lock)
#define DESTROY_adaptive(lock)

#define ALONE(lock) &lock
#define AND_NODE(lock) &lock, &node
TEST(tas, int, ALONE)
TEST(ticket, int, ALONE)
TEST(conbo, int, ALONE)
TEST(k42, int, ALONE)
TEST(mutex, int, ALONE)
TEST(adaptive, int, ALONE)
TEST(mcs, scalevm_mcs_node_t, AND_NODE)
TEST(clh, scalevm_clh_held_t, AND_NODE)

/* What the adaptive mutex returns to a thread that is not its owner. */
static void *not_owner(void *lock)
{
    CHECK(!scalevm_adaptive_owned((scalevm_adaptive_t *)lock));
    CHECK(scalevm_adaptive_unlock((scalevm_adaptive_t *)lock) == EPERM);
    return NULL;
}

static void owners(void)
{
    scalevm_adaptive_t lock = SCALEVM_ADAPTIVE_INIT;
    CHECK(scalevm_adaptive_unlock(&lock) == EPERM);
    CHECK(scalevm_adaptive_lock(&lock) == 0);
    CHECK(scalevm_adaptive_lock(&lock) == EDEADLK);
    CHECK(scalevm_adaptive_trylock(&lock) == EBUSY);
    CHECK(scalevm_adaptive_owned(&lock));
    in_thread(not_owner, &lock);
    CHECK(scalevm_adaptive_locked(&lock));
    CHECK(scalevm_adaptive_unlock(&lock) == 0);
}

static scalevm_rwlock_t rwlock = SCALEVM_RWLOCK_INIT;

static void *readers_and_writers(void *number)
{
    for (long i = 0; i < rounds; i++) {
        if ((i + (intptr_t)number) % 4 == 0) {
            scalevm_rwlock_wrlock(&rwlock);
            section();
            scalevm_rwlock_wrunlock(&rwlock);
        } else {
            scalevm_rwlock_rdlock(&rwlock);
            for (int word = 1; word < 8; word++)
                CHECK(shared[word] == shared[0]);
            scalevm_rwlock_rdunlock(&rwlock);
        }
    }
    return NULL;
}

static void *reads(void *unused)
{
    (void)unused;
    CHECK(scalevm_rwlock_trywrlock(&rwlock) == EBUSY);
    CHECK(scalevm_rwlock_tryrdlock(&rwlock) == 0);
    scalevm_rwlock_rdunlock(&rwlock);
    return NULL;
}

static void *reads_not(void *unused)
{
    (void)unused;
    CHECK(scalevm_rwlock_trywrlock(&rwlock) == EBUSY);
    CHECK(scalevm_rwlock_tryrdlock(&rwlock) == EBUSY);
    return NULL;
}

static void rwlocks(void)
{
    memset(shared, 0, sizeof shared);
    scalevm_rwlock_rdlock(&rwlock);
    CHECK(scalevm_rwlock_locked(&rwlock));
    in_thread(reads, NULL);
    scalevm_rwlock_rdunlock(&rwlock);
    CHECK(scalevm_rwlock_trywrlock(&rwlock) == 0);
    in_thread(reads_not, NULL);
    scalevm_rwlock_wrunlock(&rwlock);
    CHECK(!scalevm_rwlock_locked(&rwlock));
    in_threads(readers_and_writers);
    CHECK(shared[0] == (uint64_t)(rounds / 4) * THREADS);
    scalevm_rwlock_t other;
    memset(&other, 0xff, sizeof other);
    scalevm_rwlock_init(&other);
    CHECK(!scalevm_rwlock_locked(&other));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    rounds = atol(argv[1]);
    CHECK(rounds % 16 == 0);
    tas_test();
    ticket_test();
    conbo_test();
    mcs_test();
    clh_test();
    scalevm_clh_held_t held;
    scalevm_clh_lock(&clh, &held);
    CHECK(scalevm_clh_destroy(&clh) == EBUSY);
    scalevm_clh_unlock(&clh, &held);
    CHECK(scalevm_clh_destroy(&clh) == 0);
    k42_test();
    mutex_test();
    adaptive_test();
    owners();
    rwlocks();
    return 0;
}
