//! Timers: limits of waits, alarms, and timers that are files.
//!
//! One task, the clock, waits for the earliest timer and does what is due. A cancelled timer is
//! removed at once, so waits with limits that end early leave nothing behind.

use crate::single::Single;
use crate::system::{Lock, system};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use machine::{Clock, Scheduler, TaskName, Tasks};
use metal::Metal;

/// A timer that is set: its time, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer(u64, u64);

/// Something that happens at a timer's time.
pub trait Ring: Send + Sync {
    /// Does it. The timer may have been cancelled meanwhile.
    fn ring(self: Arc<Self>);
}

/// The system's timers.
pub static TIMERS: Single<Timers> = Single::new();

/// The timers that are set.
pub struct Timers {
    set: Lock<BTreeMap<Timer, Arc<dyn Ring>>>,
    /// The number of the next timer. It guards no other memory: relaxed.
    next: AtomicU64,
    /// The name of the clock; 0, which no task has, until it runs. The lock of `set` orders it with
    /// searches for timers: relaxed.
    clock: AtomicU64,
}

impl Timers {
    /// No timers.
    pub fn new() -> Self {
        Timers {
            set: Lock::new(BTreeMap::new()),
            next: AtomicU64::new(0),
            clock: AtomicU64::new(0),
        }
    }

    /// Sets a timer that rings at `time`.
    pub fn set(&self, time: u64, ring: Arc<dyn Ring>) -> Timer {
        let timer = Timer(time, self.next.fetch_add(1, Ordering::Relaxed));
        let mut set = self.set.lock();
        let is_first = set
            .first_key_value()
            .is_none_or(|(first, _)| timer < *first);
        set.insert(timer, ring);
        drop(set);
        if is_first {
            Metal::unpark(TaskName(self.clock.load(Ordering::Relaxed)));
        }
        timer
    }

    /// Cancels a timer, if it is still set.
    pub fn cancel(&self, timer: Timer) {
        let ring = self.set.lock().remove(&timer);
        // It may be the last reference, so it is dropped without the lock.
        drop(ring);
    }

    /// Takes the first timer, if it is due at `now`; otherwise returns its time.
    fn due(&self, now: u64) -> Result<Arc<dyn Ring>, u64> {
        let mut set = self.set.lock();
        match set.first_entry() {
            Some(first) if first.key().0 <= now => Ok(first.remove()),
            Some(first) => Err(first.key().0),
            None => Err(u64::MAX),
        }
    }

    /// The code of the clock's task.
    fn run(&self) -> ! {
        self.clock.store(Metal::current_task().0, Ordering::Relaxed);
        loop {
            match self.due(Metal::now()) {
                Ok(due) => due.ring(),
                // A timer that is set from here on, and is the first, ends the wait.
                Err(next) => metal::park_until(next),
            }
        }
    }
}

/// Starts the clock.
pub fn begin() {
    let clock = || TIMERS.run();
    system().scheduler.start(Box::new(clock));
}
