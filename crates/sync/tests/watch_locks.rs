//! Every lock tells the profile of its waits, and the call sites are those of
//! the users of [`Mutex`] and [`RwLock`].

use hosted::Hosted;
use machine::{Execute, Job, Tasks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{sleep, yield_now};
use std::time::Duration;
use sync::adaptive::Adaptive;
use sync::obm::Obm;
use sync::rwlock::SpinParkRw;
use sync::spin::{
    Clh, Cna, Conbo, Hapax, K42, Mcs, Proportional, Qspinlock, Reciprocating, TestAndSet, Ticket,
};
use sync::watch::profile::{self, Row};
use sync::watch::{LockClass, LockProfile, Watched};
use sync::{Mutex, RwLock, lock_class};

/// The row of the waiter when CPU 0 holds a lock, by `hold`, for a while after CPU 1 has
/// set out to acquire it, by `wait`.
fn waited<C: LockClass, L: Send + Sync + 'static>(
    lock: L,
    hold: fn(&L, &dyn Fn()),
    wait: fn(&L),
    enough: impl Fn(&Row) -> bool,
) {
    let lock = Arc::new(lock);
    // A busy computer may wake CPU 1 too late; then CPU 0 is to wait longer.
    for millis in [2, 10, 50, 250, 1000] {
        profile::of(Hosted::anchor()).start(2).expect("memory");
        let (held, coming) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (holder, is_held, comes) = (lock.clone(), held.clone(), coming.clone());
        let waiter = lock.clone();
        let jobs: Vec<Job> = vec![
            Box::new(move || {
                hold(&holder, &|| {
                    is_held.store(true, SeqCst);
                    while !comes.load(SeqCst) {
                        yield_now();
                    }
                    sleep(Duration::from_millis(millis));
                });
            }),
            Box::new(move || {
                while !held.load(SeqCst) {
                    yield_now();
                }
                coming.store(true, SeqCst);
                wait(&waiter);
            }),
        ];
        Hosted::new(2).execute(jobs);
        let mut rows = profile::of(Hosted::anchor()).report();
        rows.retain(|row| row.class == C::NAME && row.contended > 0);
        for row in &rows {
            assert_eq!(row.file, file!(), "{row:?}");
        }
        if rows.iter().any(&enough) {
            return;
        }
    }
    panic!(
        "{}: no wait with spins (and sleeps) in {:?}",
        C::NAME,
        profile::of(Hosted::anchor()).report()
    );
}

macro_rules! mutexes {
    ($($name:ident: $lock:ident, $class:literal, $sleeps:literal;)*) => {$(
        #[test]
        fn $name() {
            lock_class!(Class = $class);
            type Lock = Mutex<Hosted, Watched<Hosted, $lock<Hosted>, Class, LockProfile>, u32>;
            waited::<Class, _>(
                Lock::new(0),
                |lock, f| {
                    let _held = lock.lock();
                    f();
                },
                |lock| *lock.lock() += 1,
                |row| row.spins > 0 && (row.sleeps > 0) == $sleeps,
            );
        }
    )*};
}

mutexes! {
    test_and_set: TestAndSet, "test and set", false;
    ticket: Ticket, "ticket", false;
    proportional: Proportional, "proportional", false;
    conbo: Conbo, "conbo", false;
    mcs: Mcs, "mcs", false;
    clh: Clh, "clh", false;
    k42: K42, "k42", false;
    reciprocating: Reciprocating, "reciprocating", false;
    hapax: Hapax, "hapax", false;
    qspinlock: Qspinlock, "qspinlock", false;
    cna: Cna, "cna", false;
    obm: Obm, "obm", true;
    adaptive: Adaptive, "adaptive", true;
}

type Rw<C> = RwLock<Hosted, Watched<Hosted, SpinParkRw<Hosted>, C, LockProfile>, u32>;

fn slept(row: &Row) -> bool {
    row.spins > 0 && row.sleeps > 0
}

#[test]
fn a_reader_waits_for_a_writer() {
    lock_class!(Class = "read");
    waited::<Class, Rw<Class>>(
        Rw::new(0),
        |lock, f| {
            let _held = lock.write();
            f();
        },
        |lock| assert_eq!(*lock.read(), 0),
        slept,
    );
}

#[test]
fn a_writer_waits_for_a_writer() {
    lock_class!(Class = "write after write");
    waited::<Class, Rw<Class>>(
        Rw::new(0),
        |lock, f| {
            let _held = lock.write();
            f();
        },
        |lock| *lock.write() += 1,
        slept,
    );
}

#[test]
fn a_writer_waits_for_a_reader() {
    lock_class!(Class = "write after read");
    waited::<Class, Rw<Class>>(
        Rw::new(0),
        |lock, f| {
            let _held = lock.read();
            f();
        },
        |lock| *lock.write() += 1,
        slept,
    );
}
