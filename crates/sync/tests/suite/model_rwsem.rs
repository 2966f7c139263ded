//! Linux's rwsem under the checker: a writer that spins, queued ones that ask for the lock at once
//! or never, readers that steal and that are woken together.

use crate::parking;

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use machine::{Atomics, Clock, Cpus, SharedCell};
use parking::*;
use std::sync::Arc;
use sync::rwlock::{RawRw, Rwsem};

/// No waiter asks for the lock to be handed over.
type Patient = Rwsem<Loomed, 0>;
/// Queued waiters ask for the lock at once.
type Impatient = Rwsem<Loomed, 0, 0>;

/// `writers` CPUs count once, and let others run meanwhile; `readers` look once.
fn slow_writers<R: RawRw<Loomed> + 'static>(writers: usize, readers: usize) {
    let shared = Arc::new((R::new(), <Loomed as Atomics>::Cell::new(0)));
    let mine = shared.clone();
    on_all(writers + readers, move |cpu| {
        let (lock, cell) = &*mine;
        // SAFETY: the value is used under the lock, which is released as acquired.
        unsafe {
            if cpu >= writers {
                lock.read();
                assert!(
                    (0..=2 * writers)
                        .step_by(2)
                        .any(|count| *cell.read() == count)
                );
                return lock.read_unlock();
            }
            // A CPU's clock counts its looks: to a writer that wakes it, a reader is late.
            (0..9).for_each(|_| assert!(Loomed::now() > 0));
            lock.write();
            *cell.write() += 1;
            Loomed::relax(0);
            *cell.write() += 1;
            lock.write_unlock();
        }
    });
    // SAFETY: all CPUs are done.
    assert_eq!(unsafe { *shared.1.read() }, 2 * writers);
    assert!(shared.0.try_write(), "locked, or not without waiters");
}

/// A writer steals the lock from readers that are being woken. All schedules with at most one
/// preemption.
#[test]
fn readers_are_robbed() {
    explore(Some(1), || slow_writers::<Patient>(2, 1));
    explore(Some(1), || slow_writers::<Impatient>(2, 1));
}

#[test]
fn two() {
    explore(Some(3), || readers_writers::<Patient>(2, 0));
    explore(Some(3), || readers_writers::<Patient>(1, 1));
    explore(Some(3), || readers_writers::<Impatient>(2, 0));
    explore(Some(3), || readers_writers::<Impatient>(1, 1));
}

/// All schedules with at most one preemption; with two of them where one task spins.
#[test]
fn three() {
    for (writers, readers, preemptions) in [(3, 0, 1), (2, 1, 1), (1, 2, 2)] {
        explore(Some(preemptions), move || {
            readers_writers::<Patient>(writers, readers)
        });
        explore(Some(preemptions), move || {
            readers_writers::<Impatient>(writers, readers)
        });
    }
}

/// A writer downgrades while a reader and a writer compete.
fn downgrade() {
    let shared = Arc::new((Patient::new(), <Loomed as Atomics>::Cell::new(0)));
    let mine = shared.clone();
    on_all(3, move |cpu| {
        let (lock, cell) = &*mine;
        // SAFETY: the value is used under the lock, which is released as acquired.
        unsafe {
            if cpu == 2 {
                lock.read();
                assert!(*cell.read() <= 2);
                return lock.read_unlock();
            }
            lock.write();
            *cell.write() += 1;
            if cpu == 1 {
                return lock.write_unlock();
            }
            assert!(lock.try_downgrade());
            assert!((1..=2).contains(cell.read().as_ref().expect("a cell")));
            lock.read_unlock();
        }
    });
    // SAFETY: all CPUs are done.
    assert_eq!(unsafe { *shared.1.read() }, 2);
    assert!(!shared.0.is_locked());
}

#[test]
fn a_writer_becomes_a_reader() {
    explore(Some(1), downgrade);
}

const LOCK: (&str, &str) = (
    "rwsem/mod.rs",
    include_str!("../../src/rwlock/rwsem/mod.rs"),
);
const QUEUE: (&str, &str) = (
    "rwsem/queue.rs",
    include_str!("../../src/rwlock/rwsem/queue.rs"),
);
const WAKE: (&str, &str) = (
    "rwsem/wake.rs",
    include_str!("../../src/rwlock/rwsem/wake.rs"),
);
const SPIN: (&str, &str) = (
    "rwsem/spin.rs",
    include_str!("../../src/rwlock/rwsem/spin.rs"),
);

/// With this many writers and readers the model fails with `flaw` after the comment, also if a
/// wake-up orders nothing.
fn found(
    flaw: Flaw,
    (file, text): (&'static str, &str),
    comment: &str,
    (writers, readers): (usize, usize),
) {
    let preemptions = Some(if writers + readers == 2 { 3 } else { 1 });
    must_be_found(flaw, Site::after(file, text, comment), || {
        loomed::with_late_unparks(|| {
            explore(preemptions, move || {
                readers_writers::<Patient>(writers, readers)
            });
            explore(preemptions, move || {
                readers_writers::<Impatient>(writers, readers)
            });
        });
    });
}

#[test]
fn releases_without_release_are_found() {
    let of_readers = "Release: pairs with the acquire of the next writer.";
    found(Flaw::Relaxed, LOCK, of_readers, (1, 1));
    let of_writers = "Release: pairs with the acquire of the next readers or writer.";
    found(Flaw::Relaxed, LOCK, of_writers, (2, 0));
    let grant = "Release: pairs with the acquire in `Waiter::wait`";
    found(Flaw::Relaxed, QUEUE, grant, (1, 1));
}

#[test]
fn acquisitions_without_acquire_are_found() {
    let granted = "Acquire: pairs with the release of the last writer, for all readers";
    found(Flaw::Relaxed, WAKE, granted, (1, 1));
    let told = "Acquire: pairs with the release in `Readers::next`";
    found(Flaw::Relaxed, QUEUE, told, (1, 1));
    let stolen = "Acquire: pairs with the releases of the readers and the writer before.";
    found(Flaw::Relaxed, SPIN, stolen, (2, 0));
}
