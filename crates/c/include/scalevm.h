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
 * A callback's place, in the object that it is for. It needs no initialisation.
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
 * Makes the lock free, as `SCALEVM_TAS_INIT` does.
 */
void scalevm_tas_init(scalevm_tas_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
 */
void scalevm_tas_lock(scalevm_tas_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_tas_trylock(scalevm_tas_t *lock);

/**
 * Releases the lock, for its holder. Aborts if it is free.
 */
void scalevm_tas_unlock(scalevm_tas_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_tas_locked(const scalevm_tas_t *lock);

/**
 * Makes the lock free, as `SCALEVM_TICKET_INIT` does.
 */
void scalevm_ticket_init(scalevm_ticket_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
 */
void scalevm_ticket_lock(scalevm_ticket_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_ticket_trylock(scalevm_ticket_t *lock);

/**
 * Releases the lock, for its holder. Aborts if it is free.
 */
void scalevm_ticket_unlock(scalevm_ticket_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_ticket_locked(const scalevm_ticket_t *lock);

/**
 * Makes the lock free, as `SCALEVM_CONBO_INIT` does.
 */
void scalevm_conbo_init(scalevm_conbo_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
 */
void scalevm_conbo_lock(scalevm_conbo_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_conbo_trylock(scalevm_conbo_t *lock);

/**
 * Releases the lock, for its holder. Aborts if it is free.
 */
void scalevm_conbo_unlock(scalevm_conbo_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_conbo_locked(const scalevm_conbo_t *lock);

/**
 * Makes the lock free, as `SCALEVM_MCS_INIT` does.
 */
void scalevm_mcs_init(scalevm_mcs_t *lock);

/**
 * Acquires the lock with this node, waiting as long as it takes. A thread that holds it waits for
 * itself.
 */
void scalevm_mcs_lock(scalevm_mcs_t *lock, scalevm_mcs_node_t *node);

/**
 * Acquires the lock with this node if it is free: returns 0, or EBUSY if it is not; the node is
 * unused then.
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
 * Makes the lock free, as `SCALEVM_CLH_INIT` does.
 */
void scalevm_clh_init(scalevm_clh_t *lock);

/**
 * Gives up what the lock owns: returns 0, or EBUSY, and does nothing, if the lock is held. It is
 * free then, as after an init.
 */
int scalevm_clh_destroy(scalevm_clh_t *lock);

/**
 * Acquires the lock, waiting as long as it takes, and stores the acquisition. A thread that holds
 * it waits for itself.
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
 * Makes the lock free, as `SCALEVM_K42_INIT` does.
 */
void scalevm_k42_init(scalevm_k42_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
 */
void scalevm_k42_lock(scalevm_k42_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_k42_trylock(scalevm_k42_t *lock);

/**
 * Releases the lock, for its holder. Aborts if it is free.
 */
void scalevm_k42_unlock(scalevm_k42_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_k42_locked(const scalevm_k42_t *lock);

/**
 * Makes the lock free, as `SCALEVM_MUTEX_INIT` does.
 */
void scalevm_mutex_init(scalevm_mutex_t *lock);

/**
 * Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
 */
void scalevm_mutex_lock(scalevm_mutex_t *lock);

/**
 * Acquires the lock if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_mutex_trylock(scalevm_mutex_t *lock);

/**
 * Releases the lock, for its holder. Aborts if it is free.
 */
void scalevm_mutex_unlock(scalevm_mutex_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_mutex_locked(const scalevm_mutex_t *lock);

/**
 * Makes the lock free, as `SCALEVM_ADAPTIVE_INIT` does.
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
 * Releases the lock: returns 0, or EPERM, and does nothing, if the caller does not hold it.
 */
int scalevm_adaptive_unlock(scalevm_adaptive_t *lock);

/**
 * Returns true if the caller holds the lock. Exact.
 */
bool scalevm_adaptive_owned(const scalevm_adaptive_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_adaptive_locked(const scalevm_adaptive_t *lock);

/**
 * Makes the lock free, as `SCALEVM_RWLOCK_INIT` does.
 */
void scalevm_rwlock_init(scalevm_rwlock_t *lock);

/**
 * Acquires the lock together with other readers, waiting as long as it takes.
 */
void scalevm_rwlock_rdlock(scalevm_rwlock_t *lock);

/**
 * Acquires the lock together with other readers if no writer holds it or waits for readers:
 * returns 0, or EBUSY.
 */
int scalevm_rwlock_tryrdlock(scalevm_rwlock_t *lock);

/**
 * Releases the lock, for a reader. Aborts if none holds it.
 */
void scalevm_rwlock_rdunlock(scalevm_rwlock_t *lock);

/**
 * Acquires the lock alone, waiting as long as it takes. A thread that holds it waits for itself.
 */
void scalevm_rwlock_wrlock(scalevm_rwlock_t *lock);

/**
 * Acquires the lock alone if it is free: returns 0, or EBUSY if it is not.
 */
int scalevm_rwlock_trywrlock(scalevm_rwlock_t *lock);

/**
 * Releases the lock, for its writer. Aborts if none holds it.
 */
void scalevm_rwlock_wrunlock(scalevm_rwlock_t *lock);

/**
 * Returns true if the lock was held a moment ago.
 */
bool scalevm_rwlock_locked(const scalevm_rwlock_t *lock);

/**
 * Makes an epoch for this many threads, 0 for 1024: returns 0, EINVAL if there are too many, or
 * ENOMEM. `SCALEVM_EPOCH_INIT` makes one for 1024 threads.
 */
int scalevm_epoch_init(scalevm_epoch_t *epoch, uint32_t threads);

/**
 * Runs all callbacks and gives up what the epoch owns: returns 0, or EBUSY, and does nothing, if a
 * section is open. It may be used again, as after `SCALEVM_EPOCH_INIT`.
 */
int scalevm_epoch_destroy(scalevm_epoch_t *epoch);

/**
 * Enters a section.
 */
void scalevm_epoch_enter(scalevm_epoch_t *epoch);

/**
 * Leaves the section that was entered last. Aborts if the caller is in none.
 */
void scalevm_epoch_exit(scalevm_epoch_t *epoch);

/**
 * Returns true if the caller is in a section.
 */
bool scalevm_epoch_inside(scalevm_epoch_t *epoch);

/**
 * Returns when every section has ended that was open at the call. Aborts if the caller is in one.
 */
void scalevm_epoch_wait(scalevm_epoch_t *epoch);

/**
 * Names this moment, for scalevm_epoch_passed(). Never 0.
 */
uint64_t scalevm_epoch_snapshot(scalevm_epoch_t *epoch);

/**
 * Returns true if every section has ended that was open at that moment. It may be false for a
 * while longer; asking again is enough for it to become true. Aborts if scalevm_epoch_snapshot()
 * has named no such moment.
 */
bool scalevm_epoch_passed(scalevm_epoch_t *epoch, uint64_t moment);

/**
 * Leaves a callback: run(entry) is called once every section has ended that was open at the call.
 * Until then the entry stays in place, and is used for nothing else. Returns at once, unless the
 * caller has 16384 callbacks pending: then it waits for some, if it is in no section.
 */
void scalevm_epoch_call(scalevm_epoch_t *epoch,
                        scalevm_epoch_entry_t *entry,
                        void (*run)(scalevm_epoch_entry_t*));

/**
 * Runs callbacks of the caller that are due, but none in a section; returns whether it has none
 * left.
 */
bool scalevm_epoch_poll(scalevm_epoch_t *epoch);

/**
 * Returns when every callback has run that any thread had left before. Aborts if the caller is in
 * a section or in a callback.
 */
void scalevm_epoch_barrier(scalevm_epoch_t *epoch);

/**
 * Makes a counter at 0 with this limit, at most 2^63 - 1, for this many threads, 0 for 1024:
 * returns 0, EINVAL if the limit is higher or there are too many threads, or ENOMEM.
 * `SCALEVM_COUNTER_INIT(limit)` makes one for 1024 threads; the first use of one with a higher
 * limit aborts.
 */
int scalevm_counter_init(scalevm_counter_t *counter, uint64_t limit, uint32_t threads);

/**
 * Gives up what the counter owns. It may be used again, with the same limit, and is at 0.
 */
void scalevm_counter_destroy(scalevm_counter_t *counter);

/**
 * Reserves n units, or none if fewer are free; returns whether it did.
 */
bool scalevm_counter_reserve(scalevm_counter_t *counter, uint64_t n);

/**
 * Releases n reserved units, in any thread, whole or in parts. Aborts if the counter sees that
 * fewer are reserved.
 */
void scalevm_counter_release(scalevm_counter_t *counter, uint64_t n);

/**
 * How many units are reserved; exact while no thread reserves or releases.
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
