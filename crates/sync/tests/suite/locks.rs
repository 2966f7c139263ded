//! Every spin lock on real threads, by one harness: a lock's adapter is one line.

use hosted::Hosted;
use std::cell::UnsafeCell;
use std::mem::{forget, size_of};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use sync::spin::{
    Clh, Cna, Conbo, Hapax, K42, Mcs, Proportional, Qspinlock, Reciprocating, TestAndSet, Ticket,
};
use sync::{Mutex, RawLock};

/// A counter that is not atomic.
struct Plain(UnsafeCell<u64>);
// SAFETY: the lock under test is to give access to one thread at a time.
unsafe impl Sync for Plain {}

/// `threads` threads count under the lock.
fn exclusion<R: RawLock<Hosted>>(threads: u64, times: u64) {
    let (lock, count) = (R::new(), Plain(UnsafeCell::new(0)));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let count = &count;
                for _ in 0..times {
                    let held = lock.lock();
                    // SAFETY: under the lock.
                    unsafe { *count.0.get() += 1 };
                    // SAFETY: acquired above.
                    unsafe { lock.unlock(held) };
                }
            });
        }
    });
    assert_eq!(count.0.into_inner(), threads * times);
    assert!(!lock.is_locked());
}

/// Threads that lock or try in arbitrary order; failed attempts are not counted.
fn trying<R: RawLock<Hosted>>() {
    let mutex = Mutex::<Hosted, R, u64>::new(0);
    let counted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let mutex = &mutex;
                scope.spawn(move || {
                    let mut counted = 0;
                    for _ in 0..2_000 {
                        if i == 0 {
                            *mutex.lock() += 1;
                            counted += 1;
                        } else if let Some(mut guard) = mutex.try_lock() {
                            *guard += 1;
                            counted += 1;
                        }
                    }
                    counted
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert!(counted >= 2_000);
    let guard = mutex.try_lock().expect("it is free");
    assert!(mutex.is_locked());
    assert!(thread::scope(|s| s
        .spawn(|| mutex.try_lock().is_none())
        .join()
        .unwrap()));
    drop(guard);
    assert!(!mutex.is_locked());
    assert_eq!(mutex.into_inner(), counted);
}

/// CPU time the thread has used, in nanoseconds.
fn cpu_time(thread: &impl JoinHandleExt) -> i64 {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the thread has not been joined, and the pointers are valid.
    unsafe {
        assert_eq!(
            libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock),
            0
        );
        assert_eq!(libc::clock_gettime(clock, &mut time), 0);
    }
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Waiters get the lock in the order in which they came. Each waiter uses a millisecond of CPU time
/// before the next is started: as it does nothing else, it is in the queue by then, however busy
/// the computer is.
fn fifo<R: RawLock<Hosted> + 'static>() {
    static ONE_AT_A_TIME: StdMutex<()> = StdMutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let shared: &'static (R, StdMutex<Vec<u32>>) =
        Box::leak(Box::new((R::new(), StdMutex::default())));
    let (lock, order) = shared;
    let held = lock.lock();
    let waiters: Vec<_> = (0..5)
        .map(|i| {
            let started: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
            let waiter = thread::spawn(move || {
                started.store(true, Ordering::Release);
                let held = lock.lock();
                order.lock().unwrap().push(i);
                // SAFETY: acquired above.
                unsafe { lock.unlock(held) };
            });
            while !started.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let start = cpu_time(&waiter);
            while cpu_time(&waiter) < start + 1_000_000 {
                thread::yield_now();
            }
            waiter
        })
        .collect();
    // SAFETY: acquired above.
    unsafe { lock.unlock(held) };
    waiters
        .into_iter()
        .for_each(|waiter| waiter.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

/// The requirements of `lock_api`: a mutex may move and die while a forgotten guard holds
/// it, and guards work from a `static`-able constant.
fn ecosystem<R: RawLock<Hosted> + lock_api::RawMutex>() {
    let mutex = lock_api::Mutex::<R, u64>::new(1);
    forget(mutex.lock());
    let moved = Box::new(mutex);
    assert!(moved.is_locked() && moved.try_lock().is_none());
    drop(moved);

    // Held while it moves, then released by the state of that acquisition, and used
    // by several threads afterwards.
    let mutex = lock_api::Mutex::<R, u64>::new(1);
    // SAFETY: no other task uses the raw lock.
    let state = lock_api::RawMutex::lock(unsafe { mutex.raw() });
    let mutex = Box::new(mutex);
    assert!(mutex.try_lock().is_none());
    // SAFETY: the state of the one acquisition there is.
    unsafe { mutex.force_unlock(state) };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..500).for_each(|_| *mutex.lock() += 1));
        }
    });
    assert_eq!(mutex.into_inner(), 1501);
}

/// Several locks of a kind at once, released in any order, by tasks that come and go.
fn nested<R: RawLock<Hosted>>() {
    let locks: Vec<R> = (0..6).map(|_| R::new()).collect();
    for _ in 0..4 {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut held: Vec<_> = locks.iter().map(|l| Some(l.lock())).collect();
                for i in [3, 0, 5, 1, 4, 2] {
                    // SAFETY: acquired above.
                    unsafe { locks[i].unlock(held[i].take().unwrap()) };
                }
            });
        });
        assert!(locks.iter().all(|lock| !lock.is_locked()));
    }
}

macro_rules! harness {
    ($($name:ident: $lock:ident, $bytes:literal bytes $(, $fifo:ident)?;)*) => {$(
        mod $name {
            use super::*;
            const _: () = assert!(size_of::<$lock<Hosted>>() == $bytes);

            #[test]
            fn mutual_exclusion() {
                exclusion::<$lock<Hosted>>(2, 5_000);
            }

            #[test]
            fn oversubscription_finishes() {
                exclusion::<$lock<Hosted>>(12, 100);
            }

            #[test]
            fn try_lock() {
                trying::<$lock<Hosted>>();
            }

            #[test]
            fn moves_and_dies_while_locked() {
                ecosystem::<$lock<Hosted>>();
            }

            #[test]
            fn held_in_any_order() {
                nested::<$lock<Hosted>>();
            }

            $(
                #[test]
                fn first_come_first_served() {
                    $fifo::<$lock<Hosted>>();
                }
            )?
        }
    )*};
}

harness! {
    test_and_set: TestAndSet, 1 bytes;
    ticket: Ticket, 8 bytes, fifo;
    proportional: Proportional, 8 bytes, fifo;
    conbo: Conbo, 8 bytes, fifo;
    mcs: Mcs, 8 bytes, fifo;
    clh: Clh, 8 bytes, fifo;
    k42: K42, 16 bytes, fifo;
    reciprocating: Reciprocating, 8 bytes;
    hapax: Hapax, 16 bytes, fifo;
    qspinlock: Qspinlock, 4 bytes, fifo;
    cna: Cna, 4 bytes;
}

#[test]
fn locks_stand_in_statics() {
    static COUNT: lock_api::Mutex<Clh<Hosted>, u32> = lock_api::Mutex::new(0);
    *COUNT.lock() += 1;
    assert_eq!(*COUNT.lock(), 1);
}
