//! The parking locks on real threads, more of them than cores.

use hosted::Hosted;
use machine::{Atomics, Execute, Job, SharedCell, Tasks};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use sync::adaptive::Adaptive;
use sync::obm::{Obm, slow_paths};
use sync::rwlock::{FreebsdRw, RawRw, RwLock, Rwsem, SpinParkRw};
use sync::sleepq::{GlobalQueue, Hashed, SleepQueue};
use sync::turnstile::Turnstiles;
use sync::{Padded, RawLock};

const _: () = assert!(size_of::<Obm<Hosted>>() == 1);
const _: () = assert!(size_of::<Adaptive<Hosted>>() == size_of::<usize>());
const _: () = assert!(size_of::<SpinParkRw<Hosted>>() == 4);
const _: () = assert!(size_of::<Rwsem<Hosted>>() == 40);

fn on_all(cpus: usize, job: impl Fn(usize) + Send + Sync + 'static) {
    let job = Arc::new(job);
    let jobs = (0..cpus).map(|cpu| {
        let job = job.clone();
        Box::new(move || job(cpu)) as Job
    });
    Hosted::new(cpus).execute(jobs.collect());
}

/// All counts arrive; some holders are descheduled inside, so that others block.
fn counts<R: RawLock<Hosted, Held = ()> + 'static>(cpus: usize) {
    const EACH: usize = 20_000;
    let shared = Arc::new((R::new(), <Hosted as Atomics>::Cell::new(0)));
    let mine = shared.clone();
    on_all(cpus, move |_| {
        for n in 0..EACH {
            mine.0.lock();
            // SAFETY: the lock is held, and released as acquired.
            unsafe {
                *mine.1.write() += 1;
                if n % 1000 == 0 {
                    Hosted::yield_now();
                }
                mine.0.unlock(());
            }
        }
    });
    // SAFETY: all threads are done.
    assert_eq!(unsafe { *shared.1.read() }, cpus * EACH);
    assert!(!shared.0.is_locked());
    assert!(shared.0.try_lock().is_some() && shared.0.try_lock().is_none());
}

#[test]
fn mutexes_exclude() {
    for cpus in [2, 4, 8] {
        counts::<Obm<Hosted>>(cpus);
        counts::<Obm<Hosted, 0>>(cpus);
        counts::<Adaptive<Hosted>>(cpus);
        counts::<Adaptive<Hosted, 0>>(cpus);
    }
}

#[test]
fn slow_paths_are_counted() {
    let before = slow_paths::<Hosted>();
    let lock = Arc::new(Obm::<Hosted, 0>::new());
    lock.lock();
    let other = lock.clone();
    let waiter = std::thread::spawn(move || {
        other.lock();
        // SAFETY: just acquired.
        unsafe { other.unlock(()) };
    });
    while !Turnstiles::<Hosted>::global()
        .lock(ptr::from_ref(&*lock).cast())
        .has_waiters()
    {
        Hosted::yield_now();
    }
    // SAFETY: acquired above.
    unsafe { lock.unlock(()) };
    waiter.join().unwrap();
    let after = slow_paths::<Hosted>();
    assert!(after.slow_lock > before.slow_lock);
    assert!(after.slow_unlock > before.slow_unlock);
}

#[test]
fn guards_of_the_ecosystem() {
    static BYTE: lock_api::Mutex<Obm<Hosted>, u32> = lock_api::Mutex::new(1);
    static WORD: lock_api::Mutex<Adaptive<Hosted>, u32> = lock_api::Mutex::new(1);
    static SHARED: lock_api::RwLock<SpinParkRw<Hosted>, u32> = lock_api::RwLock::new(1);
    *BYTE.lock() += 1;
    *WORD.lock() += 1;
    *SHARED.write() += 1;
    let both = (SHARED.read(), SHARED.read());
    assert!(SHARED.try_write().is_none());
    assert_eq!(*both.0 + *both.1 + *BYTE.lock() + *WORD.lock(), 8);
}

#[test]
fn readers_see_whole_writes() {
    for cpus in [2, 4, 8] {
        whole_writes::<SpinParkRw<Hosted>>(cpus, 20_000);
        whole_writes::<FreebsdRw<Hosted>>(cpus, 20_000);
        whole_writes::<FreebsdRw<Hosted, 0, 1, 20>>(cpus, 20_000);
        whole_writes::<Rwsem<Hosted>>(cpus, 20_000);
        // Waiters spin little, and soon ask for the lock.
        whole_writes::<Rwsem<Hosted, 100, 10_000>>(cpus, 20_000);
    }
}

/// A pair of equal words is never seen unequal, and no write is lost.
fn whole_writes<R: RawRw<Hosted> + 'static>(cpus: usize, each: usize) {
    let lock = Arc::new(RwLock::<Hosted, R, _>::new([0usize; 2]));
    let mine = lock.clone();
    on_all(cpus, move |cpu| {
        for n in 0..each {
            if (n + cpu) % 4 == 0 {
                let mut pair = mine.write();
                pair[0] += 1;
                if n % 1024 == 0 {
                    Hosted::yield_now();
                }
                pair[1] += 1;
            } else {
                let pair = mine.read();
                assert_eq!(pair[0], pair[1]);
            }
        }
    });
    assert_eq!(*lock.read(), [cpus * each / 4; 2]);
}

#[test]
fn readers_share() {
    all_inside::<SpinParkRw<Hosted>>();
    all_inside::<FreebsdRw<Hosted>>();
    all_inside::<Rwsem<Hosted>>();
}

/// All readers are inside at once: each waits inside for the others.
fn all_inside<R: RawRw<Hosted> + 'static>() {
    let lock = Arc::new((R::new(), AtomicUsize::new(0)));
    on_all(4, move |_| {
        lock.0.read();
        lock.1.fetch_add(1, Ordering::AcqRel);
        while lock.1.load(Ordering::Acquire) < 4 {
            Hosted::yield_now();
        }
        // SAFETY: acquired above.
        unsafe { lock.0.read_unlock() };
    });
}

#[test]
fn writers_do_not_starve() {
    gets_in::<SpinParkRw<Hosted>>();
    gets_in::<FreebsdRw<Hosted>>();
    gets_in::<Rwsem<Hosted>>();
}

/// A writer acquires the lock although readers overlap all the time.
fn gets_in<R: RawRw<Hosted> + 'static>() {
    let shared = Arc::new((R::new(), AtomicBool::new(false), AtomicUsize::new(0)));
    on_all(4, move |cpu| {
        let (lock, done, reading) = &*shared;
        if cpu == 0 {
            while reading.load(Ordering::Acquire) < 3 {
                Hosted::yield_now();
            }
            lock.write();
            done.store(true, Ordering::Release);
            // SAFETY: acquired above.
            unsafe { lock.write_unlock() };
            return;
        }
        lock.read();
        reading.fetch_add(1, Ordering::AcqRel);
        // Each reader comes back before the other two have left.
        while !done.load(Ordering::Acquire) {
            // SAFETY: acquired before the loop, or at its end.
            unsafe { lock.read_unlock() };
            lock.read();
        }
        // SAFETY: acquired last.
        unsafe { lock.read_unlock() };
    });
}

/// Tasks that came one after the other are woken in that order.
#[test]
fn turnstiles_are_first_in_first_out() {
    let queue = Arc::new((Turnstiles::<Hosted>::new(4), Mutex::new(Vec::new())));
    let key = ptr::from_ref(&*queue).cast();
    let waiting = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..6)
        .map(|n| {
            let (queue, counter) = (queue.clone(), waiting.clone());
            let thread = std::thread::spawn(move || {
                let chain = queue.0.lock(ptr::from_ref(&*queue).cast());
                counter.fetch_add(1, Ordering::Relaxed);
                chain.wait();
                queue.1.lock().unwrap().push(n);
            });
            while waiting.load(Ordering::Relaxed) <= n {
                Hosted::yield_now();
            }
            thread
        })
        .collect();
    for n in 0..6 {
        assert!(queue.0.lock(key).signal());
        while queue.1.lock().unwrap().len() <= n {
            Hosted::yield_now();
        }
    }
    assert!(!queue.0.lock(key).signal());
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*queue.1.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
}

/// A token goes round: each task sleeps until it is its turn.
fn token<Q: SleepQueue<Hosted> + 'static>() {
    const TASKS: usize = 4;
    const ROUNDS: usize = 500;
    let shared = Arc::new((Q::new(), [0; TASKS].map(Padded), AtomicUsize::new(0)));
    on_all(TASKS, move |me| {
        let (queue, keys, turn) = &*shared;
        let key = |n: usize| ptr::from_ref(&keys[n % TASKS]).cast();
        for round in 0..ROUNDS {
            let mine = round * TASKS + me;
            while turn.load(Ordering::Acquire) != mine {
                queue.sleep(key(me), || turn.load(Ordering::Acquire) != mine);
            }
            turn.store(mine + 1, Ordering::Release);
            queue.wake(key(me + 1), 1);
        }
    });
}

#[test]
fn sleepers_wake() {
    token::<Hashed<Hosted>>();
    token::<GlobalQueue<Hosted>>();
}
