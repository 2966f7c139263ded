//! FreeBSD's reader-writer lock under the checker: waiters of both kinds, a writer that spins
//! behind readers, an upgrade.

use crate::parking;

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use machine::{Atomics, SharedCell};
use parking::*;
use std::sync::Arc;
use sync::rwlock::{FreebsdRw, RawRw};

/// No task spins.
type Sleeping = FreebsdRw<Loomed, 0, 0, 0>;
/// A task looks once more behind readers.
type Spinning = FreebsdRw<Loomed, 0, 1, 1>;

#[test]
fn two() {
    for (writers, readers) in [(2, 0), (1, 1)] {
        explore(Some(3), move || {
            readers_writers::<Sleeping>(writers, readers)
        });
        explore(Some(3), move || {
            readers_writers::<Spinning>(writers, readers)
        });
    }
}

/// All schedules with at most this many preemptions.
#[test]
fn three() {
    for (writers, readers, preemptions) in [(3, 0, 1), (2, 1, 1), (1, 2, 2)] {
        explore(Some(preemptions), move || {
            readers_writers::<Sleeping>(writers, readers)
        });
        explore(Some(preemptions), move || {
            readers_writers::<Spinning>(writers, readers)
        });
    }
}

/// Two readers upgrade while a writer waits: at most one of them gets the lock at once.
fn upgrades<R: RawRw<Loomed> + 'static>() {
    let shared = Arc::new((R::new(), <Loomed as Atomics>::Cell::new(0)));
    let mine = shared.clone();
    on_all(3, move |cpu| {
        let (lock, count) = &*mine;
        // SAFETY: the value is used under the lock, which is released as acquired.
        unsafe {
            if cpu == 2 {
                lock.write();
                *count.write() += 1;
                return lock.write_unlock();
            }
            lock.read();
            let seen = *count.read();
            if lock.try_upgrade() {
                assert_eq!(seen, *count.read(), "a writer came first");
                *count.write() += 1;
                lock.write_unlock();
            } else {
                lock.read_unlock();
            }
        }
    });
    // SAFETY: all CPUs are done.
    assert!((1..=3).contains(unsafe { &*shared.1.read() }));
    assert!(!shared.0.is_locked());
}

#[test]
fn a_reader_becomes_the_writer() {
    explore(Some(2), upgrades::<Sleeping>);
    explore(Some(1), upgrades::<Spinning>);
}

const LOCK: (&str, &str) = (
    "rwlock/freebsd.rs",
    include_str!("../../src/rwlock/freebsd.rs"),
);

/// With this many writers and readers the model fails if the operation after the comment orders
/// nothing.
fn found(comment: &str, (writers, readers): (usize, usize)) {
    let preemptions = Some(if writers + readers == 2 { 3 } else { 1 });
    must_be_found(Flaw::Relaxed, Site::after(LOCK.0, LOCK.1, comment), || {
        explore(preemptions, move || {
            readers_writers::<Sleeping>(writers, readers)
        });
    });
}

#[test]
fn releases_without_release_are_found() {
    found(
        "Release: pairs with the acquire of the next writer.",
        (1, 1),
    );
    found(
        "Release: pairs with the acquire of the next of either kind.",
        (2, 0),
    );
    found(
        "Release: pairs with the acquire of any that come meanwhile.",
        (3, 0),
    );
}

#[test]
fn acquisitions_without_acquire_are_found() {
    found(
        "Acquire: pairs with the release of the last writer.",
        (1, 1),
    );
    found(
        "Acquire: pairs with the releases before, of a writer that waited.",
        (2, 0),
    );
}
