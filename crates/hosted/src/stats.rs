//! Counters of the CPUs' translation.

use crate::Hosted;
use core::iter::Sum;
use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Counts of one CPU's translation since the machine was made.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)+
        }

        /// The counters behind [`Stats`]: written by their CPU, read by any.
        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        impl Counters {
            fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }

        impl Sum for Stats {
            fn sum<I: Iterator<Item = Stats>>(all: I) -> Stats {
                all.fold(Stats::default(), |sum, one| Stats { $($name: sum.$name + one.$name,)+ })
            }
        }
    };
}

counters! {
    /// Accesses whose translation was in the TLB.
    hits,
    /// Accesses that needed a walk: misses, and first writes through clean entries.
    walks,
    /// Accesses that were refused.
    faults,
    /// Calls of `flush_local`.
    local_flushes,
    /// Calls of `shootdown`.
    shootdowns,
    /// Requests posted to other CPUs: one for each target of each shootdown.
    requests,
    /// Of the requests, those whose target was performing an access, for which the initiator
    /// waited.
    acknowledged,
    /// Of the requests, those whose target was not translating; they waited in its
    /// mailbox until its next access.
    deferred,
    /// Orders taken from the CPU's own mailbox; fewer than the requests where it was full.
    served,
    /// Orders to drop everything, because the mailbox was full.
    overflows,
}

/// Counts up. One writer, so no read-modify-write instruction.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        let value = self.0.load(Ordering::Relaxed);
        self.0.store(value + n, Ordering::Relaxed);
    }
}

impl Hosted {
    /// The counts of each CPU so far, by CPU index; [`Iterator::sum`] adds them up. Exact for an
    /// idle CPU. Empty for a machine without memory.
    pub fn stats(&self) -> Vec<Stats> {
        let cpus = self.inner.mmus.iter();
        cpus.map(|cpu| cpu.counters.snapshot()).collect()
    }
}
