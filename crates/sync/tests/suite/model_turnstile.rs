//! Turnstiles and sleep queues, under the checker: no task sleeps forever.
//!
//! All schedules of two CPUs; of three, those with at most one preemption (two did not
//! end in 25 s: three CPUs spin on one chain lock).

use crate::parking;

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use machine::{Atomic, Atomics, Ordering};
use parking::*;
use std::ptr;
use std::sync::Arc;
use sync::sleepq::{GlobalQueue, Hashed, SleepQueue};
use sync::turnstile::Turnstiles;

type Flag = <Loomed as Atomics>::AtomicU32;

/// How the waiters wait.
#[derive(Clone, Copy)]
enum Waiting {
    /// The waiters check under the chain lock.
    Loomed,
    /// The waiters check, then lock the chain and wait.
    Early,
}

/// How the waker wakes.
#[derive(Clone, Copy)]
enum Waking {
    Broadcast,
    SignalEach,
    /// One signal, however many wait.
    SignalOne,
}

/// CPU 0 sets a flag and wakes; the others wait for it.
fn event(cpus: usize, waiting: Waiting, waking: Waking) {
    // The chain lock orders the flag, so relaxed accesses are enough.
    let shared = Arc::new((Flag::new(0), Turnstiles::<Loomed>::new(1)));
    on_all(cpus, move |cpu| {
        let (flag, turnstiles) = &*shared;
        let key = ptr::from_ref(flag).cast();
        if cpu == 0 {
            let mut chain = turnstiles.lock(key);
            flag.store(1, Ordering::Relaxed);
            match waking {
                Waking::Broadcast => {
                    chain.broadcast();
                }
                Waking::SignalEach => while chain.signal() {},
                Waking::SignalOne => {
                    chain.signal();
                }
            }
            assert!(matches!(waking, Waking::SignalOne) || !chain.has_waiters());
            return;
        }
        match waiting {
            Waiting::Loomed => {
                let chain = turnstiles.lock(key);
                if flag.load(Ordering::Relaxed) == 0 {
                    chain.wait();
                    assert_eq!(flag.load(Ordering::Relaxed), 1);
                }
            }
            Waiting::Early => {
                if flag.load(Ordering::Relaxed) == 0 {
                    turnstiles.lock(key).wait();
                }
            }
        }
    });
}

#[test]
fn broadcast() {
    explore(None, || event(2, Waiting::Loomed, Waking::Broadcast));
    explore(Some(1), || event(3, Waiting::Loomed, Waking::Broadcast));
}

#[test]
fn signal() {
    explore(None, || event(2, Waiting::Loomed, Waking::SignalOne));
    explore(Some(1), || event(3, Waiting::Loomed, Waking::SignalEach));
}

#[test]
fn check_before_the_chain_is_locked() {
    assert!(caught(None, || event(2, Waiting::Early, Waking::Broadcast)));
}

#[test]
fn one_signal_for_two_waiters() {
    assert!(caught(Some(1), || event(
        3,
        Waiting::Loomed,
        Waking::SignalOne
    )));
}

/// A waiter's node is on its stack: the waker's accesses to it come before the waiter goes on,
/// also if that has not parked.
fn a_woken_task_goes_on_at_once() {
    loomed::with_late_unparks(|| {
        explore(None, || event(2, Waiting::Loomed, Waking::Broadcast));
        explore(Some(1), || event(3, Waiting::Loomed, Waking::SignalEach));
    });
}

#[test]
fn a_node_is_its_waiters_again() {
    a_woken_task_goes_on_at_once();
}

#[test]
fn a_wake_up_that_orders_nothing_is_caught() {
    let turnstile = include_str!("../../src/turnstile.rs");
    for comment in [
        "Release: pairs with the acquire in `block`.",
        "Acquire: pairs with the release in `wake`;",
    ] {
        let site = Site::after("src/turnstile.rs", turnstile, comment);
        must_be_found(Flaw::Relaxed, site, a_woken_task_goes_on_at_once);
    }
}

/// Two keys in one chain: each waiter is woken by its own key only.
#[test]
fn keys_that_share_a_chain() {
    explore(Some(1), || {
        let shared = Arc::new(([Flag::new(0), Flag::new(0)], Turnstiles::<Loomed>::new(1)));
        on_all(3, move |cpu| {
            let (flags, turnstiles) = &*shared;
            let key = |n: usize| ptr::from_ref(&flags[n]).cast();
            if cpu < 2 {
                let chain = turnstiles.lock(key(cpu));
                if flags[cpu].load(Ordering::Relaxed) == 0 {
                    chain.wait();
                    assert_eq!(flags[cpu].load(Ordering::Relaxed), 1);
                }
                return;
            }
            for (n, flag) in flags.iter().enumerate() {
                let mut chain = turnstiles.lock(key(n));
                flag.store(1, Ordering::Relaxed);
                chain.signal();
                assert!(!chain.has_waiters());
            }
        });
    });
}

/// CPU 0 sets a flag and wakes all; the others sleep until it is set.
fn sleepers<Q: SleepQueue<Loomed> + 'static>(cpus: usize, recheck: bool) {
    let shared = Arc::new((Flag::new(0), Q::new()));
    on_all(cpus, move |cpu| {
        let (flag, queue) = &*shared;
        let key = ptr::from_ref(flag).cast();
        if cpu == 0 {
            flag.store(1, Ordering::Release);
            queue.wake(key, usize::MAX);
            return;
        }
        let unset = || flag.load(Ordering::Acquire) == 0;
        if recheck {
            queue.sleep(key, unset);
        } else if unset() {
            queue.sleep(key, || true);
        }
        assert!(!unset());
    });
}

#[test]
fn sleep_hashed() {
    explore(None, || sleepers::<Hashed<Loomed>>(2, true));
    explore(Some(1), || sleepers::<Hashed<Loomed>>(3, true));
}

#[test]
fn sleep_global() {
    explore(None, || sleepers::<GlobalQueue<Loomed>>(2, true));
    explore(Some(1), || sleepers::<GlobalQueue<Loomed>>(3, true));
}

#[test]
fn sleep_without_recheck() {
    assert!(caught(None, || sleepers::<Hashed<Loomed>>(2, false)));
    assert!(caught(None, || sleepers::<GlobalQueue<Loomed>>(2, false)));
}
