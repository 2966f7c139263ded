//! Shared parts of the models of the parking locks, and the mutants.
#![allow(dead_code)] // each model uses a part

use loomed::{Loomed, loom};
use machine::{Atomic, AtomicInt, Atomics, Execute, Ordering, SharedCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use sync::RawLock;
use sync::rwlock::RawRw;
use sync::turnstile::Turnstiles;

/// Explores `model` with at most `preemptions` preemptions (`None`: all).
pub fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Returns true if the checker finds in `model` a race, a lost count or a task that sleeps for
/// ever. A model that is too big for the checker does not count as found.
pub fn caught(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) -> bool {
    let run = catch_unwind(AssertUnwindSafe(|| explore(preemptions, model)));
    run.is_err_and(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        let text = text.unwrap_or_default();
        let found = ["deadlock", "Causality violation", "assertion"];
        assert!(
            found.iter().any(|f| text.contains(f)),
            "not a finding: {text}"
        );
        true
    })
}

/// Runs `job` on `cpus` CPUs at once.
pub fn on_all(cpus: usize, job: impl Fn(usize) + Send + Sync + 'static) {
    // The anchor synchronizes with `core`'s atomics, which the checker does not see: to it, a table
    // made by one CPU would race with its use on another. So it is made beforehand.
    Turnstiles::<Loomed>::global();
    let job = Arc::new(job);
    let jobs = (0..cpus).map(|cpu| {
        let job = job.clone();
        Box::new(move || job(cpu)) as machine::Job
    });
    Loomed::new(cpus).execute(jobs.collect());
}

type Cell<T> = <Loomed as Atomics>::Cell<T>;

/// Each of `cpus` CPUs counts once under the lock. A race, a lost count or a task
/// that sleeps forever ends the model.
pub fn exclusion<R: RawLock<Loomed> + 'static>(cpus: usize) {
    let shared = Arc::new((R::new(), Cell::new(0)));
    let mine = shared.clone();
    on_all(cpus, move |_| {
        let (lock, cell) = &*mine;
        let held = lock.lock();
        // SAFETY: the lock is held.
        unsafe { *cell.write() += 1 };
        // SAFETY: this task has acquired it, with this token.
        unsafe { lock.unlock(held) };
    });
    // SAFETY: all CPUs are done.
    assert_eq!(unsafe { *shared.1.read() }, cpus);
    assert!(!shared.0.is_locked());
}

/// `writers` CPUs count once, `readers` look once.
pub fn readers_writers<R: RawRw<Loomed> + 'static>(writers: usize, readers: usize) {
    let shared = Arc::new((R::new(), Cell::new(0)));
    let mine = shared.clone();
    on_all(writers + readers, move |cpu| {
        let (lock, cell) = &*mine;
        // SAFETY: the value is used under the lock, which is released as acquired.
        unsafe {
            if cpu < writers {
                lock.write();
                *cell.write() += 1;
                lock.write_unlock();
            } else {
                lock.read();
                assert!(*cell.read() <= writers);
                lock.read_unlock();
            }
        }
    });
    // SAFETY: all CPUs are done.
    assert_eq!(unsafe { *shared.1.read() }, writers);
    assert!(!shared.0.is_locked());
}

/// One CPU counts and looks at its count as a reader, another counts, a third looks.
pub fn downgrading<R: RawRw<Loomed> + 'static>() {
    let shared = Arc::new((R::new(), Cell::new(0)));
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
            let count = *cell.read();
            if cpu == 1 {
                return lock.write_unlock();
            }
            assert!(lock.try_downgrade(), "it always can");
            assert_eq!(*cell.read(), count, "no writer came in between");
            lock.read_unlock();
        }
    });
    // SAFETY: all CPUs are done.
    assert_eq!(unsafe { *shared.1.read() }, 2);
    assert!(!shared.0.is_locked());
}

const LOCKED: u8 = 4;
const CONTESTED: u8 = 1;
const WAKING: u8 = 2;
const BITS: u8 = 3;

/// No bug: the mutex as it is in `sync`, without spinning.
pub const FAITHFUL: u8 = 0;
/// A waiter does not read the word again when it holds the chain.
pub const NO_RECHECK: u8 = 1;
/// A release takes the contested bit away and wakes no task.
pub const DROPS_CONTESTED: u8 = 2;
/// A release stores instead of subtracting.
pub const STORES: u8 = 3;
/// A task that goes back to the queue keeps WAKING.
pub const KEEPS_WAKING: u8 = 4;
/// The lock is taken with a load and a store.
pub const NO_EXCHANGE: u8 = 5;

/// The one-byte mutex, with the bug `BUG`.
pub struct MutantObm<const BUG: u8> {
    word: <Loomed as Atomics>::AtomicU8,
}

impl<const BUG: u8> MutantObm<BUG> {
    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    fn take(&self, mine: u8) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        if word & !BITS != 0 {
            return false;
        }
        let taken = LOCKED | (word & !mine);
        if BUG == NO_EXCHANGE {
            self.word.store(taken, Ordering::Relaxed);
            Loomed::fence(Ordering::Acquire);
            return true;
        }
        self.word
            .compare_exchange(word, taken, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn contest(&self, mine: u8) -> bool {
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word & !BITS == 0 && BUG != NO_RECHECK {
                return false;
            }
            let kept = if BUG == KEEPS_WAKING { 0 } else { mine };
            let contested = word & !kept | CONTESTED;
            if word == contested
                || self
                    .word
                    .compare_exchange(word, contested, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                return true;
            }
        }
    }
}

// SAFETY: without a bug, as for the original; the mutants must be found.
unsafe impl<const BUG: u8> RawLock<Loomed> for MutantObm<BUG> {
    type Held = ();
    const NAME: &'static str = "mutant";

    fn new() -> Self {
        MutantObm {
            word: Atomic::new(0),
        }
    }

    fn lock(&self) {
        let mut mine = 0;
        while !self.take(mine) {
            let chain = Turnstiles::<Loomed>::global().lock(self.key());
            if self.contest(mine) {
                if mine == 0 {
                    chain.wait();
                } else {
                    chain.wait_first();
                }
                mine = WAKING;
            }
        }
    }

    fn try_lock(&self) -> Option<()> {
        self.take(0).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        let old = match BUG {
            STORES => {
                let old = self.word.load(Ordering::Relaxed);
                self.word.store(old & BITS, Ordering::Release);
                old
            }
            DROPS_CONTESTED => {
                self.word.fetch_and(WAKING, Ordering::Release);
                0
            }
            _ => self.word.fetch_sub(LOCKED, Ordering::Release),
        };
        if old & BITS != CONTESTED {
            return;
        }
        let mut chain = Turnstiles::<Loomed>::global().lock(self.key());
        if !chain.has_waiters() || self.word.load(Ordering::Relaxed) & WAKING != 0 {
            return;
        }
        chain.signal();
        if !chain.has_waiters() {
            self.word.fetch_and(!CONTESTED, Ordering::Relaxed);
        }
        self.word.fetch_or(WAKING, Ordering::Relaxed);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !BITS != 0
    }
}
