//! Every spin lock in every interleaving of two threads, and of three with bounded
//! preemption: mutual exclusion, hand-over of the data, no lost waiter, and a
//! `try_lock` that fails only while a thread has the lock.
//!
//! A lost waiter spins forever, which ends a model by its limit of branches. That
//! these models catch planted bugs is shown in `model_spin_mutants.rs`.

use crate::model;

use loomed::Loomed;
use machine::{Execute, Job};
use model::{Shared, bounded, increment, reused_node, two_threads};
use std::sync::Arc;
use sync::RawLock;
use sync::spin::{
    Clh, Conbo, Hapax, K42, Mcs, Proportional, Qspinlock, Queued, Reciprocating, TestAndSet, Ticket,
};

/// One task locks and unlocks twice, another tries: a task that acquires the lock is its only
/// holder, and a failed attempt leaves a working lock.
fn trying<R: RawLock<Loomed> + 'static>() {
    loomed::loom::model(|| {
        let shared = Arc::new(Shared::<R>::new());
        let (locker, trier) = (shared.clone(), shared.clone());
        Loomed::new(2).execute(vec![
            Box::new(move || {
                increment(&*locker);
                increment(&*locker);
            }) as Job,
            Box::new(move || {
                if let Some(held) = trier.lock.try_lock() {
                    trier.add();
                    // SAFETY: just acquired.
                    unsafe { trier.lock.unlock(held) };
                }
            }),
        ]);
        Loomed::new(1).execute(vec![Box::new(move || {
            assert!(!shared.lock.is_locked());
            let held = shared.lock.try_lock().expect("the lock is free");
            assert!(shared.lock.is_locked());
            assert!(shared.lock.try_lock().is_none(), "it is held");
            assert!((2..=3).contains(&shared.get()));
            // SAFETY: acquired above.
            unsafe { shared.lock.unlock(held) };
        })]);
    });
}

/// Two tasks try: at least one acquires the lock if no other thread competes.
fn both_trying<R: RawLock<Loomed> + 'static>() {
    loomed::loom::model(|| {
        let shared = Arc::new(Shared::<R>::new());
        let trier = |shared: Arc<Shared<R>>| {
            Box::new(move || {
                if let Some(held) = shared.lock.try_lock() {
                    shared.add();
                    // SAFETY: just acquired.
                    unsafe { shared.lock.unlock(held) };
                }
            }) as Job
        };
        Loomed::new(2).execute(vec![trier(shared.clone()), trier(shared.clone())]);
        let count = Loomed::new(1);
        count.execute(vec![Box::new(move || assert!(shared.get() >= 1))]);
    });
}

macro_rules! models {
    ($($name:ident: $lock:ident, $preemptions:literal;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn two() {
                two_threads::<$lock<Loomed>>();
            }

            #[test]
            fn three() {
                bounded::<$lock<Loomed>>($preemptions, &[1, 1, 1]);
            }

            #[test]
            fn try_lock() {
                trying::<$lock<Loomed>>();
            }

            #[test]
            fn try_lock_both() {
                both_trying::<$lock<Loomed>>();
            }
        }
    )*};
}

// With two waiters on one word and two preemptions, loom lets the waiters run in turn forever;
// with one preemption the model ends, and for queue locks with two. (The first of `qspinlock`'s
// queue also waits on the lock.)
models! {
    test_and_set: TestAndSet, 1;
    ticket: Ticket, 1;
    proportional: Proportional, 1;
    conbo: Conbo, 1;
    mcs: Mcs, 2;
    clh: Clh, 2;
    k42: K42, 2;
    reciprocating: Reciprocating, 2;
    hapax: Hapax, 1;
    qspinlock: Qspinlock, 1;
    cna: Cna, 1;
}

/// CNA that sometimes searches for a waiter of its own NUMA node, and sometimes lets the secondary
/// queue go first.
type Cna<M> = Queued<M, 1>;

/// One task holds the lock, one waits on the lock itself, and only then is there a queue: of two,
/// and of one that comes back.
#[test]
fn queues_behind_the_pending_task() {
    bounded::<Qspinlock<Loomed>>(1, &[1, 1, 1, 1]);
    bounded::<Cna<Loomed>>(1, &[1, 1, 1, 1]);
}

/// CPUs 0 and 2 are of one NUMA node. Where CPU 2 is first of the queue, before 1 and 0, it hands
/// over to 0.
#[test]
fn cna_passes_over_the_other_node() {
    bounded::<Cna<Loomed>>(1, &[2, 1, 1, 1]);
}

/// `try_lock` behind a node that has come back: it leaves the queue again.
#[test]
fn clh_leaves_from_behind_a_reused_node() {
    reused_node::<Clh<Loomed>>(None, &[2]);
}

/// It leaves when a follower stands behind it already, which then follows the node before.
#[test]
fn clh_abandons_its_node_to_a_follower() {
    reused_node::<Clh<Loomed>>(Some(4), &[3]);
}
