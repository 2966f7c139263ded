//! Every spin lock in every interleaving of two threads, and of three with bounded
//! preemption: mutual exclusion, hand-over of the data, no lost waiter, and a
//! `try_lock` that fails only while somebody has the lock.
//!
//! A lost waiter spins for ever, which ends a model by its limit of branches. That
//! these models catch planted bugs is shown in `model_spin_mutants.rs`.

mod model;

use checked::Checked;
use checked::loom::model::Builder;
use machine::{Execute, Job};
use model::{Shared, exclusion, increment, two_threads};
use std::sync::Arc;
use sync::RawLock;
use sync::spin::{Clh, Conbo, K42, Mcs, Proportional, TestAndSet, Ticket};

/// Three threads, one acquisition each: two waiters behind a holder.
fn three_threads<R: RawLock<Checked> + 'static>() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| exclusion::<R>(&[1, 1, 1]));
}

/// One locks and unlocks twice, one tries: whoever gets in is alone there, and
/// a failed attempt leaves a lock that works.
fn trying<R: RawLock<Checked> + 'static>() {
    checked::loom::model(|| {
        let shared = Arc::new(Shared::<R>::new());
        let (locker, trier) = (shared.clone(), shared.clone());
        Checked::new(2).execute(vec![
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
        Checked::new(1).execute(vec![Box::new(move || {
            assert!(!shared.lock.is_locked());
            let held = shared.lock.try_lock().expect("nobody has the lock");
            assert!(shared.lock.is_locked());
            assert!(shared.lock.try_lock().is_none(), "it is held");
            assert!((2..=3).contains(&shared.get()));
            // SAFETY: acquired above.
            unsafe { shared.lock.unlock(held) };
        })]);
    });
}

/// Two try: at least one gets in if nobody else is about.
fn both_trying<R: RawLock<Checked> + 'static>() {
    checked::loom::model(|| {
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
        Checked::new(2).execute(vec![trier(shared.clone()), trier(shared.clone())]);
        let count = Checked::new(1);
        count.execute(vec![Box::new(move || assert!(shared.get() >= 1))]);
    });
}

macro_rules! models {
    ($($name:ident: $lock:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn two() {
                two_threads::<$lock<Checked>>();
            }

            #[test]
            fn three() {
                three_threads::<$lock<Checked>>();
            }

            #[test]
            fn try_lock() {
                trying::<$lock<Checked>>();
            }

            #[test]
            fn try_lock_both() {
                both_trying::<$lock<Checked>>();
            }
        }
    )*};
}

models! {
    test_and_set: TestAndSet;
    ticket: Ticket;
    proportional: Proportional;
    conbo: Conbo;
    mcs: Mcs;
    clh: Clh;
    k42: K42;
}
