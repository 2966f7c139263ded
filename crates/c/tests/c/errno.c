/* No function changes errno, though its waits are interrupted and its allocations store to it.
 * Usage: errno ROUNDS */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

/* The allocator of the process, which stores to errno even when it succeeds, as allocators may. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
enum { STORED = 1077 };
static atomic_long stores;
static void store(void)
{
    atomic_fetch_add(&stores, 1);
    errno = STORED;
}
void *malloc(size_t n) { void *p = __libc_malloc(n); store(); return p; }
void *calloc(size_t n, size_t m) { void *p = __libc_calloc(n, m); store(); return p; }
void *realloc(void *old, size_t n) { void *p = __libc_realloc(old, n); store(); return p; }
void free(void *p) { __libc_free(p); store(); }
int posix_memalign(void **p, size_t align, size_t n)
{
    *p = __libc_memalign(align, n);
    store();
    return *p ? 0 : ENOMEM;
}

static scalevm_mutex_t mutex = SCALEVM_MUTEX_INIT;
static scalevm_adaptive_t adaptive = SCALEVM_ADAPTIVE_INIT;
static scalevm_rwlock_t rwlock = SCALEVM_RWLOCK_INIT;
static scalevm_tas_t tas = SCALEVM_TAS_INIT;
static scalevm_ticket_t ticket = SCALEVM_TICKET_INIT;
static scalevm_conbo_t conbo = SCALEVM_CONBO_INIT;
static scalevm_mcs_t mcs = SCALEVM_MCS_INIT;
static scalevm_clh_t clh = SCALEVM_CLH_INIT;
static scalevm_k42_t k42 = SCALEVM_K42_INIT;
static scalevm_epoch_t epoch = SCALEVM_EPOCH_INIT;
static scalevm_counter_t counter = SCALEVM_COUNTER_INIT(1000);
static atomic_bool stop;

/* Calls, and checks that errno is unchanged. */
#define KEEPS(call)                                                                     \
    do {                                                                                \
        errno = 1234;                                                                   \
        (void)(call);                                                                   \
        if (errno != 1234) {                                                            \
            fprintf(stderr, "%s: errno is %d afterwards\n", #call, errno);              \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)
#define KEEPS_IN(lock, hold, unlock) \
    do {                             \
        KEEPS(lock);                 \
        hold;                        \
        KEEPS(unlock);               \
    } while (0)

/* The caller's callback stores to errno, too. */
static void called(scalevm_epoch_entry_t *entry)
{
    free(entry);
    errno = EBADF;
}

static void ignore(int number)
{
    (void)number;
}

static void *round_of_all(void *unused)
{
    scalevm_mcs_node_t node;
    scalevm_clh_held_t held;
    while (!atomic_load(&stop)) {
        KEEPS_IN(scalevm_mutex_lock(&mutex), usleep(50), scalevm_mutex_unlock(&mutex));
        KEEPS_IN(scalevm_adaptive_lock(&adaptive), usleep(50), scalevm_adaptive_unlock(&adaptive));
        KEEPS_IN(scalevm_rwlock_wrlock(&rwlock), usleep(50), scalevm_rwlock_wrunlock(&rwlock));
        KEEPS_IN(scalevm_rwlock_rdlock(&rwlock), usleep(50), scalevm_rwlock_rdunlock(&rwlock));
        KEEPS_IN(scalevm_tas_lock(&tas), , scalevm_tas_unlock(&tas));
        KEEPS_IN(scalevm_ticket_lock(&ticket), , scalevm_ticket_unlock(&ticket));
        KEEPS_IN(scalevm_conbo_lock(&conbo), , scalevm_conbo_unlock(&conbo));
        KEEPS_IN(scalevm_mcs_lock(&mcs, &node), , scalevm_mcs_unlock(&mcs, &node));
        KEEPS_IN(scalevm_clh_lock(&clh, &held), , scalevm_clh_unlock(&clh, &held));
        KEEPS_IN(scalevm_k42_lock(&k42), , scalevm_k42_unlock(&k42));
        KEEPS_IN(scalevm_epoch_enter(&epoch), usleep(50), scalevm_epoch_exit(&epoch));
        KEEPS(scalevm_epoch_wait(&epoch));
        scalevm_epoch_entry_t *entry = malloc(sizeof *entry);
        CHECK(entry != NULL);
        KEEPS(scalevm_epoch_call(&epoch, entry, called));
        KEEPS(scalevm_epoch_poll(&epoch));
        KEEPS(scalevm_epoch_passed(&epoch, scalevm_epoch_snapshot(&epoch)));
        KEEPS_IN(scalevm_counter_reserve(&counter, 100), , scalevm_counter_release(&counter, 100));
        KEEPS(scalevm_counter_used(&counter));
    }
    return unused;
}

/* Objects that allocate memory, and free it. */
static void *makes(void *unused)
{
    scalevm_epoch_t own;
    scalevm_counter_t few;
    scalevm_clh_t lock = SCALEVM_CLH_INIT;
    scalevm_clh_held_t held;
    KEEPS(scalevm_clh_lock(&lock, &held));
    KEEPS(scalevm_clh_unlock(&lock, &held));
    KEEPS(scalevm_clh_destroy(&lock));
    KEEPS(scalevm_epoch_init(&own, 0));
    scalevm_epoch_entry_t *entry = malloc(sizeof *entry);
    CHECK(entry != NULL);
    KEEPS(scalevm_epoch_call(&own, entry, called));
    KEEPS(scalevm_epoch_destroy(&own));
    KEEPS(scalevm_counter_init(&few, 10, 0));
    KEEPS(scalevm_counter_init(&few, UINT64_MAX, 0));
    KEEPS(scalevm_counter_init(&few, 10, 2000));
    KEEPS(scalevm_counter_destroy(&few));
    return unused;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    struct sigaction action = {.sa_handler = ignore};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    long before = atomic_load(&stores);
    in_thread(makes, NULL);
    makes(NULL);
    CHECK(atomic_load(&stores) > before + 10);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, round_of_all, NULL) == 0);
    for (long i = 0; i < atol(argv[1]); i++) {
        CHECK(pthread_kill(threads[i % THREADS], SIGUSR1) == 0);
        usleep(1000);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    scalevm_epoch_barrier(&epoch);
    return 0;
}
