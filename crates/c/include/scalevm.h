/*
 * scalevm: locks, epochs and counters for C and C++. See scalevm(3).
 *
 * Made from the sources by tests/generated.rs; do not edit.
 */

#ifndef SCALEVM_H
#define SCALEVM_H

#include <stdbool.h>
#include <stdint.h>

/* Static initialisers: a free lock, an epoch or a counter for 1024 threads. */
#define SCALEVM_TAS_INIT {0}
#define SCALEVM_TICKET_INIT {{0, 0}}
#define SCALEVM_CONBO_INIT {{0, 0}}
#define SCALEVM_MCS_INIT {0}
#define SCALEVM_CLH_INIT {0}
#define SCALEVM_K42_INIT {{0, 0}}
#define SCALEVM_MUTEX_INIT {0}
#define SCALEVM_ADAPTIVE_INIT {0}
#define SCALEVM_RWLOCK_INIT {0}
#define SCALEVM_EPOCH_INIT {0, 0, 0}
#define SCALEVM_COUNTER_INIT(limit) {0, (limit), 0, 0}


/**
 * A test-and-set lock.
 */
typedef struct {
  uint8_t held;
} scalevm_tas_t;

/**
 * A ticket lock.
 */
typedef struct {
  uint32_t words[2];
} scalevm_ticket_t;

/**
 * A ticket lock with conservative backoff.
 */
typedef struct {
  uint32_t words[2];
} scalevm_conbo_t;

/**
 * An MCS lock.
 */
typedef struct {
  uintptr_t tail;
} scalevm_mcs_t;

/**
 * A place in the queue of an MCS lock.
 */
typedef struct {
  uintptr_t words[2];
} scalevm_mcs_node_t;

/**
 * A CLH lock.
 */
typedef struct {
  uintptr_t tail;
} scalevm_clh_t;

/**
 * An acquisition of a CLH lock.
 */
typedef struct {
  uintptr_t node;
} scalevm_clh_held_t;

/**
 * A K42 lock.
 */
typedef struct {
  uintptr_t words[2];
} scalevm_k42_t;

/**
 * A mutex of one byte.
 */
typedef struct {
  uint8_t state;
} scalevm_mutex_t;

/**
 * An adaptive mutex.
 */
typedef struct {
  uintptr_t owner;
} scalevm_adaptive_t;

/**
 * A reader/writer lock.
 */
typedef struct {
  uint32_t word;
} scalevm_rwlock_t;

/**
 * An epoch.
 */
typedef struct {
  uintptr_t domain;
  uint32_t threads;
  uint32_t reserved;
} scalevm_epoch_t;

/**
 * A callback's place in the object that it frees. It needs no initialisation.
 */
typedef struct {
  uintptr_t words[4];
} scalevm_epoch_entry_t;

/**
 * A counter.
 */
typedef struct {
  uintptr_t counter;
  uint64_t limit;
  uint32_t threads;
  uint32_t reserved;
} scalevm_counter_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Initialises the lock as free, as `SCALEVM_TAS_INIT` does.
 */
void scalevm_tas_init(scalevm_tas_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
 */
void scalevm_tas_lock(scalevm_tas_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_tas_trylock(scalevm_tas_t *lock);

/**
 * Releases the lock for its holder. Aborts if the lock is free.
 */
void scalevm_tas_unlock(scalevm_tas_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_tas_locked(const scalevm_tas_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_TICKET_INIT` does.
 */
void scalevm_ticket_init(scalevm_ticket_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
 */
void scalevm_ticket_lock(scalevm_ticket_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_ticket_trylock(scalevm_ticket_t *lock);

/**
 * Releases the lock for its holder. Aborts if the lock is free.
 */
void scalevm_ticket_unlock(scalevm_ticket_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_ticket_locked(const scalevm_ticket_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_CONBO_INIT` does.
 */
void scalevm_conbo_init(scalevm_conbo_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
 */
void scalevm_conbo_lock(scalevm_conbo_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_conbo_trylock(scalevm_conbo_t *lock);

/**
 * Releases the lock for its holder. Aborts if the lock is free.
 */
void scalevm_conbo_unlock(scalevm_conbo_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_conbo_locked(const scalevm_conbo_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_MCS_INIT` does.
 */
void scalevm_mcs_init(scalevm_mcs_t *lock);

/**
 * Acquires the lock with this node, waiting as long as it takes. A thread that already holds it
 * deadlocks.
 */
void scalevm_mcs_lock(scalevm_mcs_t *lock, scalevm_mcs_node_t *node);

/**
 * Acquires the lock with this node if the lock is free: returns 0, or EBUSY if it is not; the node
 * is then unused.
 */
int scalevm_mcs_trylock(scalevm_mcs_t *lock, scalevm_mcs_node_t *node);

/**
 * Releases the lock that was acquired with this node. Aborts if the lock is free.
 */
void scalevm_mcs_unlock(scalevm_mcs_t *lock, scalevm_mcs_node_t *node);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_mcs_locked(const scalevm_mcs_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_CLH_INIT` does.
 */
void scalevm_clh_init(scalevm_clh_t *lock);

/**
 * Frees what the lock owns: returns 0, or EBUSY without an effect if the lock is held. Afterwards
 * the lock is free, as after an init.
 */
int scalevm_clh_destroy(scalevm_clh_t *lock);

/**
 * Acquires the lock, waiting as long as it takes, and stores the acquisition. A thread that
 * already holds it deadlocks.
 */
void scalevm_clh_lock(scalevm_clh_t *lock, scalevm_clh_held_t *held);

/**
 * Acquires the lock if it is free, and stores the acquisition: returns 0, or EBUSY if it is not.
 */
int scalevm_clh_trylock(scalevm_clh_t *lock, scalevm_clh_held_t *held);

/**
 * Releases the acquisition. Aborts if it was released before.
 */
void scalevm_clh_unlock(scalevm_clh_t *lock, scalevm_clh_held_t *held);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_clh_locked(const scalevm_clh_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_K42_INIT` does.
 */
void scalevm_k42_init(scalevm_k42_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
 */
void scalevm_k42_lock(scalevm_k42_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_k42_trylock(scalevm_k42_t *lock);

/**
 * Releases the lock for its holder. Aborts if the lock is free.
 */
void scalevm_k42_unlock(scalevm_k42_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_k42_locked(const scalevm_k42_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_MUTEX_INIT` does.
 */
void scalevm_mutex_init(scalevm_mutex_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
 */
void scalevm_mutex_lock(scalevm_mutex_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_mutex_trylock(scalevm_mutex_t *lock);

/**
 * Releases the lock for its holder. Aborts if the lock is free.
 */
void scalevm_mutex_unlock(scalevm_mutex_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_mutex_locked(const scalevm_mutex_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_ADAPTIVE_INIT` does.
 */
void scalevm_adaptive_init(scalevm_adaptive_t *lock);

/**
 * Acquires the lock, waiting as long as it takes: returns 0, or EDEADLK if the caller holds it.
 */
int scalevm_adaptive_lock(scalevm_adaptive_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_adaptive_trylock(scalevm_adaptive_t *lock);

/**
 * Releases the lock: returns 0, or EPERM without an effect if the caller does not hold it.
 */
int scalevm_adaptive_unlock(scalevm_adaptive_t *lock);

/**
 * Returns true if the caller holds the lock. The answer is exact.
 */
bool scalevm_adaptive_owned(const scalevm_adaptive_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_adaptive_locked(const scalevm_adaptive_t *lock);

/**
 * Initialises the lock as free, as `SCALEVM_RWLOCK_INIT` does.
 */
void scalevm_rwlock_init(scalevm_rwlock_t *lock);

/**
 * Acquires the lock for reading, waiting as long as it takes. Other readers may hold it too.
 */
void scalevm_rwlock_rdlock(scalevm_rwlock_t *lock);

/**
 * Acquires the lock for reading if no writer holds it or waits for readers: returns 0, or EBUSY
 * if one does.
 */
int scalevm_rwlock_tryrdlock(scalevm_rwlock_t *lock);

/**
 * Releases the lock for a reader. Aborts if no reader holds it.
 */
void scalevm_rwlock_rdunlock(scalevm_rwlock_t *lock);

/**
 * Acquires the lock for writing, waiting as long as it takes. A thread that already holds it
 * deadlocks.
 */
void scalevm_rwlock_wrlock(scalevm_rwlock_t *lock);

/**
 * Acquires the lock for writing if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_rwlock_trywrlock(scalevm_rwlock_t *lock);

/**
 * Releases the lock for its writer. Aborts if no writer holds it.
 */
void scalevm_rwlock_wrunlock(scalevm_rwlock_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_rwlock_locked(const scalevm_rwlock_t *lock);

/**
 * Initialises an epoch for this many threads (0 means 1024): returns 0, EINVAL if there are too
 * many, or ENOMEM. `SCALEVM_EPOCH_INIT` makes an epoch for 1024 threads.
 */
int scalevm_epoch_init(scalevm_epoch_t *epoch, uint32_t threads);

/**
 * Runs all callbacks and frees what the epoch owns: returns 0, or EBUSY without an effect if a
 * section is open. The epoch may be used again, as after `SCALEVM_EPOCH_INIT`.
 */
int scalevm_epoch_destroy(scalevm_epoch_t *epoch);

/**
 * Enters a section.
 */
void scalevm_epoch_enter(scalevm_epoch_t *epoch);

/**
 * Leaves the innermost section. Aborts if the caller is in none.
 */
void scalevm_epoch_exit(scalevm_epoch_t *epoch);

/**
 * Returns true if the caller is in a section.
 */
bool scalevm_epoch_inside(scalevm_epoch_t *epoch);

/**
 * Waits until every section has ended that was open at the call. Aborts if the caller is in one.
 */
void scalevm_epoch_wait(scalevm_epoch_t *epoch);

/**
 * Returns a name for this moment, for scalevm_epoch_passed(). It is never 0.
 */
uint64_t scalevm_epoch_snapshot(scalevm_epoch_t *epoch);

/**
 * Returns true if every section has ended that was open at that moment. It may return false for a
 * while longer; repeated calls are enough for it to return true. Aborts if
 * scalevm_epoch_snapshot() never returned this moment.
 */
bool scalevm_epoch_passed(scalevm_epoch_t *epoch, uint64_t moment);

/**
 * Queues a callback: the library calls run(entry) once every section has ended that was open at
 * the call. Until then the entry must stay in place, and be used for nothing else. Returns at
 * once, unless the caller has 16384 callbacks pending: then it waits for some, if it is in no
 * section.
 */
void scalevm_epoch_call(scalevm_epoch_t *epoch,
                        scalevm_epoch_entry_t *entry,
                        void (*run)(scalevm_epoch_entry_t*));

/**
 * Runs the caller's callbacks that are due, but none in a section; returns true if the caller has
 * no callbacks left.
 */
bool scalevm_epoch_poll(scalevm_epoch_t *epoch);

/**
 * Waits until every callback has run that any thread queued before the call. Aborts if the caller
 * is in a section or in a callback.
 */
void scalevm_epoch_barrier(scalevm_epoch_t *epoch);

/**
 * Initialises a counter at 0 with this limit, at most 2^63 - 1, for this many threads (0 means
 * 1024): returns 0, EINVAL if the limit or the number of threads is too high, or ENOMEM.
 * `SCALEVM_COUNTER_INIT(limit)` makes a counter for 1024 threads; if its limit is too high, the
 * first use aborts.
 */
int scalevm_counter_init(scalevm_counter_t *counter, uint64_t limit, uint32_t threads);

/**
 * Frees what the counter owns. The counter may be used again; it is at 0 and has the same limit.
 */
void scalevm_counter_destroy(scalevm_counter_t *counter);

/**
 * Reserves n units and returns true, or reserves none and returns false if fewer are free.
 */
bool scalevm_counter_reserve(scalevm_counter_t *counter, uint64_t n);

/**
 * Releases n reserved units. Any thread may release them, and in parts. Aborts if the counter sees
 * that fewer are reserved.
 */
void scalevm_counter_release(scalevm_counter_t *counter, uint64_t n);

/**
 * Returns the number of reserved units; exact while no thread reserves or releases.
 */
uint64_t scalevm_counter_used(scalevm_counter_t *counter);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SCALEVM_H */

/* The sizes and alignments for which the library was compiled. */
#ifdef __cplusplus
#define SCALEVM_ASSERT(type, size, align) \
    static_assert(sizeof(type) == (size) && alignof(type) == (align), #type)
#else
#define SCALEVM_ASSERT(type, size, align) \
    _Static_assert(sizeof(type) == (size) && _Alignof(type) == (align), #type)
#endif
SCALEVM_ASSERT(scalevm_tas_t, 1, 1);
SCALEVM_ASSERT(scalevm_ticket_t, 8, 4);
SCALEVM_ASSERT(scalevm_conbo_t, 8, 4);
SCALEVM_ASSERT(scalevm_mcs_t, 8, 8);
SCALEVM_ASSERT(scalevm_mcs_node_t, 16, 8);
SCALEVM_ASSERT(scalevm_clh_t, 8, 8);
SCALEVM_ASSERT(scalevm_clh_held_t, 8, 8);
SCALEVM_ASSERT(scalevm_k42_t, 16, 8);
SCALEVM_ASSERT(scalevm_mutex_t, 1, 1);
SCALEVM_ASSERT(scalevm_adaptive_t, 8, 8);
SCALEVM_ASSERT(scalevm_rwlock_t, 4, 4);
SCALEVM_ASSERT(scalevm_epoch_t, 16, 8);
SCALEVM_ASSERT(scalevm_counter_t, 24, 8);
#undef SCALEVM_ASSERT
