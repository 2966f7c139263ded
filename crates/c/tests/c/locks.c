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

/* A test of a lock: how it is locked, tried and unlocked with `node`. */
#define TEST(type, Node, LOCK, TRY, UNLOCK)                                   \
    static scalevm_##type##_t type = TYPE_INIT_##type;                        \
    static void *type##_turns(void *number)                                   \
    {                                                                         \
        Node node;                                                            \
        (void)node;                                                           \
        for (long i = 0; i < rounds; i++) {                                   \
            if ((i + (intptr_t)number) % 16 == 0) {                           \
                while (TRY(type) == EBUSY)                                    \
                    sched_yield();                                            \
            } else {                                                          \
                LOCK(type);                                                   \
            }                                                                 \
            section();                                                        \
            UNLOCK(type);                                                     \
        }                                                                     \
        return NULL;                                                          \
    }                                                                         \
    static void *type##_busy(void *unused)                                    \
    {                                                                         \
        Node node;                                                            \
        (void)node;                                                           \
        (void)unused;                                                         \
        CHECK(TRY(type) == EBUSY);                                            \
        CHECK(scalevm_##type##_locked(&type));                                \
        return NULL;                                                          \
    }                                                                         \
    static void type##_test(void)                                             \
    {                                                                         \
        Node node;                                                            \
        (void)node;                                                           \
        memset(shared, 0, sizeof shared);                                     \
        CHECK(!scalevm_##type##_locked(&type));                               \
        LOCK(type);                                                           \
        in_thread(type##_busy, NULL);                                         \
        UNLOCK(type);                                                         \
        CHECK(!scalevm_##type##_locked(&type));                               \
        CHECK(TRY(type) == 0);                                                \
        in_thread(type##_busy, NULL);                                         \
        UNLOCK(type);                                                         \
        in_threads(type##_turns);                                             \
        CHECK(shared[0] == (uint64_t)rounds * THREADS);                       \
        scalevm_##type##_t other;                                             \
        memset(&other, 0xff, sizeof other);                                   \
        scalevm_##type##_init(&other);                                        \
        CHECK(!scalevm_##type##_locked(&other));                              \
        CHECK(TRY(other) == 0);                                               \
        CHECK(scalevm_##type##_locked(&other));                               \
        UNLOCK(other);                                                        \
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

#define PLAIN(type)                                                           \
    static void type##_lock_(scalevm_##type##_t *lock) { scalevm_##type##_lock(lock); } \
    static void type##_unlock_(scalevm_##type##_t *lock) { scalevm_##type##_unlock(lock); }
PLAIN(tas)
PLAIN(ticket)
PLAIN(conbo)
PLAIN(k42)
PLAIN(mutex)
PLAIN(adaptive)
#define LOCK_tas(l) tas_lock_(&l)
#define TRY_tas(l) scalevm_tas_trylock(&l)
#define UNLOCK_tas(l) tas_unlock_(&l)
TEST(tas, int, LOCK_tas, TRY_tas, UNLOCK_tas)
#define LOCK_ticket(l) ticket_lock_(&l)
#define TRY_ticket(l) scalevm_ticket_trylock(&l)
#define UNLOCK_ticket(l) ticket_unlock_(&l)
TEST(ticket, int, LOCK_ticket, TRY_ticket, UNLOCK_ticket)
#define LOCK_conbo(l) conbo_lock_(&l)
#define TRY_conbo(l) scalevm_conbo_trylock(&l)
#define UNLOCK_conbo(l) conbo_unlock_(&l)
TEST(conbo, int, LOCK_conbo, TRY_conbo, UNLOCK_conbo)
#define LOCK_k42(l) k42_lock_(&l)
#define TRY_k42(l) scalevm_k42_trylock(&l)
#define UNLOCK_k42(l) k42_unlock_(&l)
TEST(k42, int, LOCK_k42, TRY_k42, UNLOCK_k42)
#define LOCK_mutex(l) mutex_lock_(&l)
#define TRY_mutex(l) scalevm_mutex_trylock(&l)
#define UNLOCK_mutex(l) mutex_unlock_(&l)
TEST(mutex, int, LOCK_mutex, TRY_mutex, UNLOCK_mutex)
#define LOCK_adaptive(l) adaptive_lock_(&l)
#define TRY_adaptive(l) scalevm_adaptive_trylock(&l)
#define UNLOCK_adaptive(l) adaptive_unlock_(&l)
TEST(adaptive, int, LOCK_adaptive, TRY_adaptive, UNLOCK_adaptive)
#define LOCK_mcs(l) scalevm_mcs_lock(&l, &node)
#define TRY_mcs(l) scalevm_mcs_trylock(&l, &node)
#define UNLOCK_mcs(l) scalevm_mcs_unlock(&l, &node)
TEST(mcs, scalevm_mcs_node_t, LOCK_mcs, TRY_mcs, UNLOCK_mcs)
#define LOCK_clh(l) scalevm_clh_lock(&l, &node)
#define TRY_clh(l) scalevm_clh_trylock(&l, &node)
#define UNLOCK_clh(l) scalevm_clh_unlock(&l, &node)
TEST(clh, scalevm_clh_held_t, LOCK_clh, TRY_clh, UNLOCK_clh)

/* What the adaptive mutex says to a thread that is not its owner. */
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
