//! OpenBSD's locks under all interleavings of two and three CPUs.

use baselines::openbsd::{MpLock, SchedLock, Scheduler, SleepRw};
use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Execute, Job, Ordering, SharedCell};
use std::ptr;
use std::sync::Arc;
use sync::rwlock::RawRw;
use sync::watch::Off;

type Cell<T> = <Loomed as Atomics>::Cell<T>;
type Flag = <Loomed as Atomics>::AtomicU32;

/// Explores schedules with at most `preemptions` preemptions.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Runs `job` on `cpus` CPUs at once. The machine's anchored values are made before: the checker
/// does not see that an anchor synchronizes.
fn on_all(cpus: usize, job: impl Fn(usize) + Send + Sync + 'static) {
    Scheduler::<Loomed>::of_machine();
    let job = Arc::new(job);
    let jobs = (0..cpus).map(|cpu| {
        let job = job.clone();
        Box::new(move || job(cpu)) as Job
    });
    Loomed::new(cpus).execute(jobs.collect());
}

/// Two CPUs count under the lock, which they take twice and release at once.
#[test]
fn the_big_lock_excludes() {
    explore(2, || {
        let shared = Arc::new((MpLock::<Loomed, SchedLock, Off>::new(), Cell::new(0)));
        let mine = shared.clone();
        on_all(2, move |_| {
            let (lock, count) = &*mine;
            lock.lock();
            lock.lock();
            // SAFETY: the lock is held.
            unsafe { *count.write() += 1 };
            assert_eq!(lock.release_all(), 2);
            assert!(!lock.is_mine());
            lock.lock_again(2);
            // SAFETY: the lock is held.
            unsafe { *count.write() += 1 };
            lock.unlock();
            assert!(lock.is_mine());
            lock.unlock();
        });
        // SAFETY: both are done.
        assert_eq!(unsafe { *shared.1.read() }, 4);
    });
}

/// A task that sleeps in the kernel releases the lock; otherwise no other could enter to wake it.
#[test]
fn sleeping_lets_the_kernel_go() {
    explore(3, || {
        let shared = Arc::new((Flag::new(0), Cell::new(0)));
        on_all(2, move |cpu| {
            let scheduler = Scheduler::<Loomed>::of_machine();
            let (ready, count) = &*shared;
            let key = ptr::from_ref(ready).cast();
            scheduler.kernel.lock();
            if cpu == 0 {
                while ready.load(Ordering::Relaxed) == 0 {
                    scheduler.sleep(key, || ready.load(Ordering::Relaxed) == 0);
                }
                // SAFETY: the kernel is locked, here and below.
                assert_eq!(unsafe { *count.read() }, 1);
            } else {
                // SAFETY: the kernel is locked.
                unsafe { *count.write() += 1 };
                ready.store(1, Ordering::Relaxed);
                scheduler.wake(key, usize::MAX);
            }
            scheduler.kernel.unlock();
        });
    });
}

/// `writers` CPUs count once, `readers` look once; with the kernel locked, if `locked`.
fn readers_writers(writers: usize, readers: usize, locked: bool) {
    let shared = Arc::new((SleepRw::<Loomed, 0>::new(), Cell::new(0)));
    let mine = shared.clone();
    on_all(writers + readers, move |cpu| {
        let (lock, count) = &*mine;
        let kernel = &Scheduler::<Loomed>::of_machine().kernel;
        if locked {
            kernel.lock();
        }
        // SAFETY: the value is used under the lock, which is released as acquired.
        unsafe {
            if cpu < writers {
                lock.write();
                *count.write() += 1;
                lock.write_unlock();
            } else {
                lock.read();
                assert!(*count.read() <= writers);
                lock.read_unlock();
            }
        }
        if locked {
            kernel.unlock();
        }
    });
    // SAFETY: all are done.
    assert_eq!(unsafe { *shared.1.read() }, writers);
    assert!(!shared.0.is_locked());
}

#[test]
fn two_writers() {
    explore(3, || readers_writers(2, 0, false));
}

#[test]
fn writer_and_reader() {
    explore(3, || readers_writers(1, 1, false));
    explore(2, || readers_writers(1, 1, true));
}

#[test]
fn writer_and_two_readers() {
    explore(1, || readers_writers(1, 2, false));
}
