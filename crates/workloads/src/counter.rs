//! Counts a task's iterations, and tells it when to stop.

use core::iter::Sum;
use core::ops::Sub;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// The counter of one task, on cache lines of its own (128 bytes, because x86 prefetches lines in
/// pairs).
///
/// Only the task writes the count, so counting is a plain load and store. The limit lies on the
/// same line, which the task owns anyway, so checking it costs no miss until another task says
/// stop. May lie in memory shared between processes.
///
/// Relaxed throughout: the numbers order nothing else.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Counter {
    count: AtomicU64,
    limit: AtomicU64,
    /// The counter from which the task takes each further iteration, if they are dealt out
    /// ([`Counter::dealt`]).
    supply: AtomicPtr<Counter>,
    /// Nanoseconds that the task spends outside of the system before each further operation.
    delay: AtomicU64,
    /// When its operation began, by the clock of `spend`; 0 if no delay came before it.
    began: AtomicU64,
    /// The number of operations that began after a delay, and the nanoseconds that they took.
    timed: [AtomicU64; 2],
    spend: Option<Spend>,
}

const _: () = assert!(size_of::<Counter>() == 128);

/// Spends nanoseconds outside of the system; returns when that began and when it ended. Processes
/// that share a counter run the same program at the same addresses.
pub type Spend = fn(u64) -> [u64; 2];

/// Operations that began after a delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timed {
    /// Their number.
    pub operations: u64,
    /// The nanoseconds that they took.
    pub time: u64,
}

impl Sum for Timed {
    fn sum<I: Iterator<Item = Timed>>(parts: I) -> Timed {
        parts.fold(Timed::default(), |sum, part| Timed {
            operations: sum.operations + part.operations,
            time: sum.time + part.time,
        })
    }
}

impl Sub for Timed {
    type Output = Timed;

    fn sub(self, before: Timed) -> Timed {
        Timed {
            operations: self.operations - before.operations,
            time: self.time - before.time,
        }
    }
}

impl Counter {
    /// A counter at 0 without a limit.
    pub const fn new() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// A counter at 0 whose task stops once it has counted `limit`.
    pub const fn with_limit(limit: u64) -> Self {
        Counter {
            count: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            supply: AtomicPtr::new(null_mut()),
            delay: AtomicU64::new(0),
            began: AtomicU64::new(0),
            timed: [const { AtomicU64::new(0) }; 2],
            spend: None,
        }
    }

    /// A counter at 0 whose task may iterate once, and once more for each that `supply` has left:
    /// its limit is how many it deals out, to all such tasks together.
    ///
    /// # Safety
    /// `supply` outlives the counter, and lies at this address in each process that calls
    /// [`Counter::add`].
    pub const unsafe fn dealt(supply: NonNull<Counter>) -> Self {
        Counter {
            supply: AtomicPtr::new(supply.as_ptr()),
            ..Self::new()
        }
    }

    /// The counter of a task that can be delayed.
    pub const fn delayed_by(self, spend: Spend) -> Self {
        Counter {
            spend: Some(spend),
            ..self
        }
    }

    /// From its next operation on, the task spends `nanoseconds` outside of the system before each.
    pub fn delay(&self, nanoseconds: u64) {
        self.delay.store(nanoseconds, Relaxed);
    }

    /// The operations so far that began after a delay.
    pub fn timed(&self) -> Timed {
        let [operations, time] = &self.timed;
        Timed {
            operations: operations.load(Relaxed),
            time: time.load(Relaxed),
        }
    }

    /// Counts `n` more. Returns true if the task is to go on. Only the counter's task may call it,
    /// or a child while the task waits for it.
    #[inline]
    #[must_use]
    pub fn add(&self, n: u64) -> bool {
        let count = self.count.load(Relaxed).wrapping_add(n);
        self.count.store(count, Relaxed);
        let goes_on = count < self.limit.load(Relaxed) && (n == 0 || self.has_leave());
        let delay = self.delay.load(Relaxed);
        if delay > 0 && goes_on {
            self.spend(n, delay);
        }
        goes_on
    }

    /// Spends the delays of the next `n` operations. The last `n` have just ended.
    #[cold]
    fn spend(&self, n: u64, delay: u64) {
        let Some(spend) = self.spend else {
            return;
        };
        let began = self.began.load(Relaxed);
        let [ended, begins] = spend(n * delay);
        if began > 0 {
            let more = [n, ended.saturating_sub(began)];
            for (sum, more) in self.timed.iter().zip(more) {
                sum.store(sum.load(Relaxed) + more, Relaxed);
            }
        }
        self.began.store(begins, Relaxed);
    }

    /// As [`Counter::add`], by any of several tasks; iterations are not dealt out.
    #[must_use]
    pub(crate) fn add_shared(&self, n: u64) -> bool {
        self.count.fetch_add(n, Relaxed) + n < self.limit.load(Relaxed)
    }

    /// Takes one more iteration from the supply. Returns true if there was one, or there is no
    /// supply.
    #[inline]
    fn has_leave(&self) -> bool {
        let supply = self.supply.load(Relaxed);
        // SAFETY: null, or a counter that outlives this one, as `dealt` was promised.
        let Some(supply) = (unsafe { supply.as_ref() }) else {
            return true;
        };
        let has_leave = supply.count.fetch_add(1, Relaxed) < supply.limit.load(Relaxed);
        if !has_leave {
            self.stop();
        }
        has_leave
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// The count, for a task that is not Rust: it adds to the count instead of calling
    /// [`Counter::add`].
    pub fn as_ptr(&self) -> *mut u64 {
        self.count.as_ptr()
    }

    /// Asks the task to stop, which it does at its next [`Counter::add`].
    pub fn stop(&self) {
        self.limit.store(0, Relaxed);
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_from_the_supply_what_nobody_has() {
        let supply = Counter::with_limit(3);
        // SAFETY: it lives as long as they do.
        let [quick, slow] = [(); 2].map(|()| unsafe { Counter::dealt(NonNull::from(&supply)) });
        assert!(quick.add(1) && quick.add(1) && slow.add(1));
        assert!(!quick.add(1) && !quick.add(0), "nothing is left");
        assert!(slow.add(0), "its operation is not over");
        assert!(!slow.add(1));
        assert_eq!(quick.get() + slow.get(), 2 + 3);
    }

    #[test]
    fn what_follows_a_delay_is_timed() {
        static CLOCK: AtomicU64 = AtomicU64::new(100);
        let counter = Counter::new().delayed_by(|time| {
            let now = CLOCK.fetch_add(time, Relaxed);
            [now, now + time]
        });
        let work = || {
            CLOCK.fetch_add(7, Relaxed);
            assert!(counter.add(2));
            let Timed { operations, time } = counter.timed();
            (operations, time)
        };
        assert_eq!((work(), CLOCK.load(Relaxed)), ((0, 0), 107), "no delay");
        counter.delay(10);
        assert_eq!(
            (work(), CLOCK.load(Relaxed)),
            ((0, 0), 134),
            "no delay before it"
        );
        assert_eq!((work(), CLOCK.load(Relaxed)), ((2, 7), 161));
        counter.stop();
        assert!(!counter.add(2));
        assert_eq!(CLOCK.load(Relaxed), 161, "no operation follows");
    }
}
