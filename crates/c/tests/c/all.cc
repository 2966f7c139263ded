// The header and the libraries in C++: static initialisers, threads, an epoch. Usage: all ROUNDS
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "check.h"

namespace {

scalevm_tas_t tas = SCALEVM_TAS_INIT;
scalevm_ticket_t ticket = SCALEVM_TICKET_INIT;
scalevm_conbo_t conbo = SCALEVM_CONBO_INIT;
scalevm_mcs_t mcs = SCALEVM_MCS_INIT;
scalevm_clh_t clh = SCALEVM_CLH_INIT;
scalevm_k42_t k42 = SCALEVM_K42_INIT;
scalevm_mutex_t mutex = SCALEVM_MUTEX_INIT;
scalevm_adaptive_t adaptive = SCALEVM_ADAPTIVE_INIT;
scalevm_rwlock_t rwlock = SCALEVM_RWLOCK_INIT;
scalevm_epoch_t epoch = SCALEVM_EPOCH_INIT;
scalevm_counter_t counter = SCALEVM_COUNTER_INIT(1000);

// The mutex as the standard library's lock_guard wants it.
struct Mutex {
    void lock() { scalevm_mutex_lock(&mutex); }
    void unlock() { scalevm_mutex_unlock(&mutex); }
};

Mutex lockable;
long sum;
std::atomic<long *> value{new long(0)};

struct Old {
    scalevm_epoch_entry_t entry;
    long *value;
};

void drop(scalevm_epoch_entry_t *entry)
{
    Old *old = reinterpret_cast<Old *>(entry);
    delete old->value;
    delete old;
}

// Its destructor runs when the thread ends, and uses the library.
struct Last {
    ~Last()
    {
        scalevm_epoch_enter(&epoch);
        scalevm_epoch_exit(&epoch);
    }
};
thread_local Last last;

void turns(long rounds)
{
    (void)&last;
    for (long i = 0; i < rounds; i++) {
        {
            std::lock_guard<Mutex> guard(lockable);
            sum++;
        }
        scalevm_epoch_enter(&epoch);
        CHECK(*value.load() >= 0);
        scalevm_epoch_exit(&epoch);
        if (i % 8 == 0) {
            Old *old = new Old;
            old->value = value.exchange(new long(i));
            scalevm_epoch_call(&epoch, &old->entry, drop);
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    long rounds = std::atol(argv[1]);
    scalevm_mcs_node_t node;
    scalevm_clh_held_t held;
    scalevm_tas_lock(&tas), scalevm_tas_unlock(&tas);
    scalevm_ticket_lock(&ticket), scalevm_ticket_unlock(&ticket);
    scalevm_conbo_lock(&conbo), scalevm_conbo_unlock(&conbo);
    scalevm_mcs_lock(&mcs, &node), scalevm_mcs_unlock(&mcs, &node);
    scalevm_clh_lock(&clh, &held), scalevm_clh_unlock(&clh, &held);
    scalevm_k42_lock(&k42), scalevm_k42_unlock(&k42);
    CHECK(scalevm_adaptive_lock(&adaptive) == 0 && scalevm_adaptive_unlock(&adaptive) == 0);
    scalevm_rwlock_rdlock(&rwlock), scalevm_rwlock_rdunlock(&rwlock);
    CHECK(scalevm_counter_reserve(&counter, 1000) && !scalevm_counter_reserve(&counter, 1));
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(turns, rounds);
    for (std::thread &thread : threads)
        thread.join();
    CHECK(sum == rounds * THREADS);
    scalevm_counter_destroy(&counter);
    CHECK(scalevm_clh_destroy(&clh) == 0);
    CHECK(scalevm_epoch_destroy(&epoch) == 0);
    delete value.load();
    return 0;
}
