//! The locks behind `lock_api` 0.4's guards, as crates use them that have not changed to 0.5.
#![cfg(feature = "lock_api_0_4")]

use hosted::Hosted;
use lock_api_0_4::{Mutex, RawMutex, RwLock, RwLockWriteGuard};
use std::thread;
use sync::adaptive::Adaptive;
use sync::obm::Threads;
use sync::rwlock::SpinParkRw;
use sync::spin::{Cna, K42, Qspinlock, TestAndSet, Ticket};

const EACH: u32 = 500;

fn counts<R: RawMutex + Send + Sync>() {
    let count = Mutex::<R, u32>::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    *count.lock() += 1;
                }
            });
        }
    });
    let held = count.try_lock().expect("it is free");
    assert_eq!(*held, 3 * EACH);
    assert!(count.try_lock().is_none());
}

#[test]
fn mutexes_count() {
    counts::<TestAndSet<Hosted>>();
    counts::<Ticket<Hosted>>();
    counts::<K42<Hosted>>();
    counts::<Qspinlock<Hosted>>();
    counts::<Cna<Hosted>>();
    counts::<Threads<Hosted>>();
    counts::<Adaptive<Hosted>>();
}

#[test]
fn a_writer_becomes_a_reader() {
    static WORDS: RwLock<SpinParkRw<Hosted>, u32> = RwLock::new(1);
    let mut write = WORDS.write();
    *write = 2;
    let read = RwLockWriteGuard::downgrade(write);
    assert_eq!((*read, *WORDS.read()), (2, 2));
    assert!(WORDS.try_write().is_none());
    drop(read);
    assert!(WORDS.try_write().is_some());
}
