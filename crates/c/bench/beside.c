/* The library compared with ck, liburcu and pthread: the cost of a lock and an unlock, an epoch's section, and a wait.
 *
 * Each row of a column is measured in turn, window by window, so that all see the same disturbances; a figure is the
 * median of its windows. `run` compiles and starts it.
 *
 * Usage: beside [DIVISOR]. DIVISOR divides the number of windows. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <scalevm.h>

#ifdef HAVE_CK
#include <ck_epoch.h>
#include <ck_rwlock.h>
#include <ck_spinlock.h>
#endif
#ifdef HAVE_URCU
#include <urcu.h>
#endif

enum { MOST = 8, ROWS = 32 };

#define LINE _Alignas(128)

static LINE unsigned long shared;

/* A row: a function that performs `count` operations in the calling thread. */
struct row {
    const char *name;
    void (*operate)(long count);
    double figure[3];
};

/* A lock that is named by its address alone. */
#define LOCK(name, type, init, lock, unlock)             \
    static LINE type name##_object = init;               \
    static void name(long count)                         \
    {                                                    \
        while (count-- > 0) {                            \
            lock(&name##_object);                        \
            shared++;                                    \
            unlock(&name##_object);                      \
        }                                                \
    }

LOCK(tas, scalevm_tas_t, SCALEVM_TAS_INIT, scalevm_tas_lock, scalevm_tas_unlock)
LOCK(ticket, scalevm_ticket_t, SCALEVM_TICKET_INIT, scalevm_ticket_lock, scalevm_ticket_unlock)
LOCK(conbo, scalevm_conbo_t, SCALEVM_CONBO_INIT, scalevm_conbo_lock, scalevm_conbo_unlock)
LOCK(k42, scalevm_k42_t, SCALEVM_K42_INIT, scalevm_k42_lock, scalevm_k42_unlock)
LOCK(mutex, scalevm_mutex_t, SCALEVM_MUTEX_INIT, scalevm_mutex_lock, scalevm_mutex_unlock)
LOCK(adaptive, scalevm_adaptive_t, SCALEVM_ADAPTIVE_INIT, scalevm_adaptive_lock, scalevm_adaptive_unlock)
LOCK(rdlock, scalevm_rwlock_t, SCALEVM_RWLOCK_INIT, scalevm_rwlock_rdlock, scalevm_rwlock_rdunlock)
LOCK(wrlock, scalevm_rwlock_t, SCALEVM_RWLOCK_INIT, scalevm_rwlock_wrlock, scalevm_rwlock_wrunlock)
LOCK(pthread_mutex, pthread_mutex_t, PTHREAD_MUTEX_INITIALIZER, pthread_mutex_lock, pthread_mutex_unlock)
LOCK(pthread_rdlock, pthread_rwlock_t, PTHREAD_RWLOCK_INITIALIZER, pthread_rwlock_rdlock, pthread_rwlock_unlock)
LOCK(pthread_wrlock, pthread_rwlock_t, PTHREAD_RWLOCK_INITIALIZER, pthread_rwlock_wrlock, pthread_rwlock_unlock)

static LINE pthread_spinlock_t pthread_spin_object;

static void pthread_spin(long count)
{
    while (count-- > 0) {
        pthread_spin_lock(&pthread_spin_object);
        shared++;
        pthread_spin_unlock(&pthread_spin_object);
    }
}

static LINE scalevm_mcs_t mcs_object = SCALEVM_MCS_INIT;

static void mcs(long count)
{
    scalevm_mcs_node_t node;
    while (count-- > 0) {
        scalevm_mcs_lock(&mcs_object, &node);
        shared++;
        scalevm_mcs_unlock(&mcs_object, &node);
    }
}

static LINE scalevm_clh_t clh_object = SCALEVM_CLH_INIT;

static void clh(long count)
{
    scalevm_clh_held_t held;
    while (count-- > 0) {
        scalevm_clh_lock(&clh_object, &held);
        shared++;
        scalevm_clh_unlock(&clh_object, &held);
    }
}

static scalevm_epoch_t epoch_object = SCALEVM_EPOCH_INIT;

static void epoch(long count)
{
    while (count-- > 0) {
        scalevm_epoch_enter(&epoch_object);
        scalevm_epoch_exit(&epoch_object);
    }
}

static void epoch_wait(long count)
{
    while (count-- > 0)
        scalevm_epoch_wait(&epoch_object);
}

#ifdef HAVE_CK
LOCK(ck_fas, ck_spinlock_fas_t, CK_SPINLOCK_FAS_INITIALIZER, ck_spinlock_fas_lock, ck_spinlock_fas_unlock)
LOCK(ck_ticket, ck_spinlock_ticket_t, CK_SPINLOCK_TICKET_INITIALIZER, ck_spinlock_ticket_lock,
     ck_spinlock_ticket_unlock)
LOCK(ck_rdlock, ck_rwlock_t, CK_RWLOCK_INITIALIZER, ck_rwlock_read_lock, ck_rwlock_read_unlock)
LOCK(ck_wrlock, ck_rwlock_t, CK_RWLOCK_INITIALIZER, ck_rwlock_write_lock, ck_rwlock_write_unlock)

static LINE ck_spinlock_mcs_t ck_mcs_object = CK_SPINLOCK_MCS_INITIALIZER;

static void ck_mcs(long count)
{
    ck_spinlock_mcs_context_t node;
    while (count-- > 0) {
        ck_spinlock_mcs_lock(&ck_mcs_object, &node);
        shared++;
        ck_spinlock_mcs_unlock(&ck_mcs_object, &node);
    }
}

static ck_epoch_t ck_object;
static _Thread_local ck_epoch_record_t *ck_record;

static ck_epoch_record_t *ck_own(void)
{
    if (ck_record == NULL) {
        ck_record = aligned_alloc(128, 256);
        ck_epoch_register(&ck_object, ck_record, NULL);
    }
    return ck_record;
}

static void ck_epoch(long count)
{
    ck_epoch_record_t *record = ck_own();
    while (count-- > 0) {
        ck_epoch_begin(record, NULL);
        ck_epoch_end(record, NULL);
    }
}

static void ck_wait(long count)
{
    ck_epoch_record_t *record = ck_own();
    while (count-- > 0)
        ck_epoch_synchronize(record);
}
#endif

#ifdef HAVE_URCU
static _Thread_local int urcu_known;

static void urcu_own(void)
{
    if (!urcu_known) {
        urcu_known = 1;
        rcu_register_thread();
    }
}

static void urcu(long count)
{
    urcu_own();
    while (count-- > 0) {
        rcu_read_lock();
        rcu_read_unlock();
    }
}

static void urcu_wait(long count)
{
    urcu_own();
    while (count-- > 0)
        synchronize_rcu();
}
#endif

static struct row spins[] = {
    {"`scalevm_tas`", tas, {0}},
    {"`scalevm_ticket`", ticket, {0}},
    {"`scalevm_conbo`", conbo, {0}},
    {"`scalevm_mcs`", mcs, {0}},
    {"`scalevm_clh`", clh, {0}},
    {"`scalevm_k42`", k42, {0}},
#ifdef HAVE_CK
    {"`ck_spinlock_fas`", ck_fas, {0}},
    {"`ck_spinlock_ticket`", ck_ticket, {0}},
    {"`ck_spinlock_mcs`", ck_mcs, {0}},
#endif
    {"`pthread_spin`", pthread_spin, {0}},
    {0},
};

static struct row sleeping[] = {
    {"`scalevm_mutex`", mutex, {0}},
    {"`scalevm_adaptive`", adaptive, {0}},
    {"`scalevm_rwlock`, reading", rdlock, {0}},
    {"`scalevm_rwlock`, writing", wrlock, {0}},
#ifdef HAVE_CK
    {"`ck_rwlock`, reading (spins)", ck_rdlock, {0}},
    {"`ck_rwlock`, writing (spins)", ck_wrlock, {0}},
#endif
    {"`pthread_mutex`", pthread_mutex, {0}},
    {"`pthread_rwlock`, reading", pthread_rdlock, {0}},
    {"`pthread_rwlock`, writing", pthread_wrlock, {0}},
    {0},
};

static struct row sections[] = {
    {"`scalevm_epoch`", epoch, {0}},
#ifdef HAVE_CK
    {"`ck_epoch`", ck_epoch, {0}},
#endif
#ifdef HAVE_URCU
    {"`liburcu` (memb)", urcu, {0}},
#endif
    {0},
};

static struct row waits[] = {
    {"`scalevm_epoch_wait`", epoch_wait, {0}},
#ifdef HAVE_CK
    {"`ck_epoch_synchronize`", ck_wait, {0}},
#endif
#ifdef HAVE_URCU
    {"`synchronize_rcu`", urcu_wait, {0}},
#endif
    {0},
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Nanoseconds of one operation by one thread. The window is so short that few are interrupted. */
static double alone(struct row *row, int count)
{
    double begin = now();
    row->operate(count);
    return (now() - begin) / count;
}

static atomic_int stop;
static atomic_long sum;
static pthread_barrier_t begin;
static struct row *current;

static void *repeat(void *unused)
{
    long count = 0;
    pthread_barrier_wait(&begin);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        /* One at a time: with more threads than CPUs, a lock that never yields takes time slices for each. */
        current->operate(1);
        count++;
    }
    atomic_fetch_add(&sum, count);
#ifdef HAVE_URCU
    if (urcu_known)
        rcu_unregister_thread();
#endif
    return unused;
}

/* Millions of operations a second of `threads` threads. */
static double together(struct row *row, int threads)
{
    pthread_t ids[MOST];
    const struct timespec window = {0, 20000000};
    current = row;
    atomic_store(&stop, 0);
    atomic_store(&sum, 0);
    pthread_barrier_init(&begin, NULL, threads + 1);
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, repeat, NULL);
    pthread_barrier_wait(&begin);
    double from = now();
    nanosleep(&window, NULL);
    atomic_store(&stop, 1);
    double time = now() - from;
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&begin);
    return (double)atomic_load(&sum) / time * 1e3;
}

static int ascending(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static int divisor = 1;

/* Fills a column with the medians of its windows. */
static void column(struct row *rows, int at, int parameter, int windows, double (*measure)(struct row *, int))
{
    static double figures[ROWS][2000];
    windows = (windows + divisor - 1) / divisor;
    for (int window = 0; window < windows; window++)
        for (int i = 0; rows[i].name; i++)
            figures[i][window] = measure(&rows[i], parameter);
    for (int i = 0; rows[i].name; i++) {
        qsort(figures[i], windows, sizeof(double), ascending);
        rows[i].figure[at] = figures[i][windows / 2];
    }
}

static void locks(const char *what, struct row *rows)
{
    column(rows, 0, 2000, 1001, alone);
    column(rows, 1, 2, 15, together);
    column(rows, 2, MOST, 15, together);
    printf("| %s | alone, ns | 2 threads, M/s | %d threads, M/s |\n|---|---|---|---|\n", what, MOST);
    for (struct row *row = rows; row->name; row++)
        printf("| %s | %.2f | %.1f | %.1f |\n", row->name, row->figure[0], row->figure[1], row->figure[2]);
    printf("\n");
}

static void epochs(const char *what, struct row *rows, int count, int windows)
{
    column(rows, 0, count, windows, alone);
    printf("| %s | ns |\n|---|---|\n", what);
    for (struct row *row = rows; row->name; row++)
        printf("| %s | %.2f |\n", row->name, row->figure[0]);
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        divisor = atoi(argv[1]);
    pthread_spin_init(&pthread_spin_object, PTHREAD_PROCESS_PRIVATE);
#ifdef HAVE_CK
    ck_epoch_init(&ck_object);
#else
    printf("ck is missing: install libck-dev.\n\n");
#endif
#ifndef HAVE_URCU
    printf("liburcu is missing: install liburcu-dev.\n\n");
#endif
    locks("spin lock", spins);
    locks("lock that sleeps", sleeping);
    epochs("section, alone", sections, 2000, 1001);
    epochs("wait for sections, none open", waits, 10, 201);
#ifdef HAVE_URCU
    rcu_unregister_thread();
#endif
    return 0;
}
