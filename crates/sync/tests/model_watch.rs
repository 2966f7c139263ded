//! Watching is invisible to a checker: it explores the interleavings of the lock alone, and still
//! finds the lock's bugs.

#[allow(dead_code)]
mod watched;

use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::{Loomed, loom};
use machine::{Atomics, Execute, Job, SharedCell, Tasks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use sync::watch::{Both, LockProfile, Order, Watched, profile};
use sync::{RawLock, lock_class};
use watched::Tas;

lock_class!(Modelled = "modelled");

type Counter = <Loomed as Atomics>::Cell<u32>;
type On<O> = Watched<Loomed, Tas<Loomed>, Modelled, O>;

/// Two tasks count to two under a lock; returns how many executions there are.
fn executions<L: RawLock<Loomed> + 'static>() -> u32 {
    executions_with::<L>(|| {})
}

/// The number of executions of two tasks that count to two under a lock; each execution begins with
/// `first`.
fn executions_with<L: RawLock<Loomed> + 'static>(first: fn()) -> u32 {
    let executions = Arc::new(AtomicU32::new(0));
    let count = executions.clone();
    loom::model(move || {
        count.fetch_add(1, Relaxed);
        first();
        let shared = Arc::new((L::new(), Counter::new(0)));
        let job = || {
            let shared = shared.clone();
            Box::new(move || {
                let (lock, counter) = &*shared;
                let held = lock.lock();
                // SAFETY: under the lock, which the model puts to the test.
                unsafe { *counter.write() += 1 };
                // SAFETY: locked above.
                unsafe { lock.unlock(held) };
            }) as Job
        };
        Loomed::new(2).execute(vec![job(), job()]);
        // SAFETY: both have ended.
        assert_eq!(unsafe { *shared.1.read() }, 2);
    });
    executions.load(Relaxed)
}

#[test]
fn the_checker_sees_the_lock_alone() {
    let bare = executions::<Tas<Loomed>>();
    println!("{bare} executions");
    assert!(bare > 1);
    assert_eq!(executions::<On<Order>>(), bare);
    assert_eq!(executions::<On<LockProfile>>(), bare);
    // An attempt before the acquisition is one step more.
    let profiled = executions_with::<On<Both<Order, LockProfile>>>(|| {
        let profile = profile::of(Loomed::anchor());
        profile.start(2).expect("memory");
    });
    assert!(profiled > bare);
}

#[test]
fn a_broken_lock_is_caught_behind_the_wrapper() {
    let unlock = "unsafe fn unlock(&self, (): ()) {\n        self.0.store";
    let site = Site::after("watched/mod.rs", include_str!("watched/mod.rs"), unlock);
    must_be_found(Flaw::Relaxed, site, || {
        executions::<On<Order>>();
    });
}
