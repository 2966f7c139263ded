/* A list that readers walk while writers replace its elements and free the old ones, in the manner of liburcu's
 * torture tests. Usage: list ROUNDS.
 *
 * PLANT=1 overwrites an element that a reader holds; PLANT=2 frees old elements at once. */
#include <stdatomic.h>

#include "check.h"

#ifndef PLANT
#define PLANT 0
#endif

enum { LENGTH = 4, WRITERS = 2 };

struct element {
    scalevm_epoch_entry_t entry;
    /* The same twice, while the element lives. */
    long number, again;
};

static scalevm_epoch_t epoch = SCALEVM_EPOCH_INIT;
static scalevm_mutex_t writers = SCALEVM_MUTEX_INIT;
static _Atomic(struct element *) list[LENGTH];
static atomic_long made, freed;
static atomic_int running;
/* The number of times that readers have walked the list. */
static atomic_long walks;
static long rounds;

static struct element *make(long number)
{
    struct element *element = malloc(sizeof *element);
    CHECK(element != NULL);
    element->number = element->again = number;
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    return element;
}

static void reclaim(scalevm_epoch_entry_t *entry)
{
    struct element *element = (struct element *)entry;
    element->number = -1;
    free(element);
    atomic_fetch_add_explicit(&freed, 1, memory_order_relaxed);
}

static void dispose(struct element *element, long how)
{
    uint64_t moment;
    switch (PLANT == 2 ? 3 : how % 3) {
    case 0:
        scalevm_epoch_wait(&epoch);
        reclaim(&element->entry);
        break;
    case 1:
        moment = scalevm_epoch_snapshot(&epoch);
        while (!scalevm_epoch_passed(&epoch, moment))
            sched_yield();
        reclaim(&element->entry);
        break;
    case 2:
        scalevm_epoch_call(&epoch, &element->entry, reclaim);
        break;
    default:
        reclaim(&element->entry);
    }
}

/* Waits until a reader has walked the whole list; orders nothing. */
static void let_read(void)
{
    long before = atomic_load_explicit(&walks, memory_order_relaxed);
    while (atomic_load_explicit(&walks, memory_order_relaxed) < before + THREADS)
        sched_yield();
}

static void *turns(void *number)
{
    if ((intptr_t)number < WRITERS) {
        for (long i = 0; i < rounds; i++) {
            if (i % 64 == 0)
                let_read();
            struct element *new = make(i);
            scalevm_mutex_lock(&writers);
            struct element *old = atomic_exchange_explicit(&list[i % LENGTH], new, memory_order_acq_rel);
            scalevm_mutex_unlock(&writers);
            dispose(old, i);
        }
        atomic_fetch_sub(&running, 1);
    } else {
        while (atomic_load(&running) > 0) {
            scalevm_epoch_enter(&epoch);
            scalevm_epoch_enter(&epoch);
            for (int i = 0; i < LENGTH; i++) {
                struct element *element = atomic_load_explicit(&list[i], memory_order_acquire);
                CHECK(element->number == element->again);
            }
            scalevm_epoch_exit(&epoch);
            CHECK(scalevm_epoch_inside(&epoch));
            scalevm_epoch_exit(&epoch);
            atomic_fetch_add_explicit(&walks, 1, memory_order_relaxed);
            /* Outside of sections, or each wait takes time slices of all readers. */
            sched_yield();
        }
    }
    return NULL;
}

/* A reader that stays in its section, and is told each step. */
static atomic_int step;

static void await(int wanted)
{
    while (atomic_load(&step) != wanted)
        sched_yield();
}

static void *stays(void *unused)
{
    (void)unused;
    scalevm_epoch_enter(&epoch);
    struct element *element = atomic_load_explicit(&list[0], memory_order_acquire);
    atomic_store(&step, 1);
    await(2);
    CHECK(element->number == element->again);
    scalevm_epoch_exit(&epoch);
    atomic_store(&step, 3);
    await(4);
    return NULL;
}

static atomic_int called;

static void count(scalevm_epoch_entry_t *entry)
{
    (void)entry;
    atomic_fetch_add(&called, 1);
}

/* An element that a reader holds exists until the reader leaves. */
static void held(void)
{
    pthread_t reader;
    CHECK(pthread_create(&reader, NULL, stays, NULL) == 0);
    await(1);
    struct element *old = atomic_exchange(&list[0], make(0));
    uint64_t moment = scalevm_epoch_snapshot(&epoch);
    static scalevm_epoch_entry_t entry;
    scalevm_epoch_call(&epoch, &entry, count);
    if (PLANT == 1)
        old->number = -1;
    for (int i = 0; i < 100; i++) {
        CHECK(!scalevm_epoch_passed(&epoch, moment));
        CHECK(!scalevm_epoch_poll(&epoch));
    }
    CHECK(atomic_load(&called) == 0);
    CHECK(scalevm_epoch_destroy(&epoch) == EBUSY);
    atomic_store(&step, 2);
    await(3);
    while (!scalevm_epoch_passed(&epoch, moment))
        sched_yield();
    while (!scalevm_epoch_poll(&epoch))
        sched_yield();
    CHECK(atomic_load(&called) == 1);
    reclaim(&old->entry);
    atomic_store(&step, 4);
    CHECK(pthread_join(reader, NULL) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    rounds = atol(argv[1]);
    for (int i = 0; i < LENGTH; i++)
        atomic_store(&list[i], make(i));
    CHECK(!scalevm_epoch_inside(&epoch));
    held();
    atomic_store(&running, WRITERS);
    in_threads(turns);
    /* The writers have ended, and their callbacks are queued. */
    scalevm_epoch_barrier(&epoch);
    CHECK(atomic_load(&made) - atomic_load(&freed) == LENGTH);
    for (int i = 0; i < LENGTH; i++)
        free(atomic_load(&list[i]));
    CHECK(scalevm_epoch_destroy(&epoch) == 0);
    return 0;
}
