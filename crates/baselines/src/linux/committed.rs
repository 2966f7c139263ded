//! `vm_committed_as`: the pages that mappings may come to need, in a counter with a part for each
//! CPU.
//!
//! It follows Linux up to 5.8 (`percpu_counter_add_batch` of lib/percpu_counter.c,
//! `mm_compute_batch` of mm/mm_init.c): a CPU adds to its own part, and moves that to the common
//! count, under the counter's spin lock, when it has come to a batch: the 256th part of a CPU's
//! share of memory. A mapping of 128 MiB is more than that, so each `mmap` and `munmap` of one
//! takes the lock. From 5.9 on the batch is a quarter of the share, and no loop of a few mappings
//! comes to it.
//!
//! The count is never compared with a limit, as in Linux with overcommit mode 0; the account `Own`
//! has the limits.

use machine::{Atomic, Machine, Ordering, SharedCell};
use sync::spin::Qspinlock;
use sync::watch::Watched;
use sync::{Padded, PerCpu, RawGuard, RawLock, lock_class};
use vm::Error;
use vm::system::{Extent, Part, Reservation};

lock_class!(
    pub CommittedLock = "vm_committed_as", rank 35
);

/// Pages of a CPU's share of memory: 4 GiB, however much of that the simulated machine has.
const PAGES_EACH: i64 = 1 << 20;
/// Pages that a CPU adds up before it takes the lock.
const BATCH: i64 = PAGES_EACH / 256;

/// The counter in front of an exact account.
pub struct CommittedAs<M: Machine, Own> {
    exact: Own,
    count: Padded<Count<M>>,
    /// The CPUs' parts of the count. A CPU accesses its own, pinned.
    parts: PerCpu<M::Cell<i64>, M>,
}

/// `struct percpu_counter`: on one line.
struct Count<M: Machine> {
    /// Where the CPUs' parts are (`counters`): read by each operation. Never changes.
    parts: M::AtomicUsize,
    lock: Watched<M, Qspinlock<M>, CommittedLock>,
    /// Guarded by the lock.
    pages: M::Cell<i64>,
}

impl<M: Machine, Own: Reservation<M>> CommittedAs<M, Own> {
    /// The common count, which lacks the CPUs' parts.
    pub fn counted(&self) -> i64 {
        let _pin = M::pin();
        let _lock = RawGuard::new(&self.count.lock);
        // SAFETY: under the lock.
        unsafe { *self.count.pages.read() }
    }

    #[track_caller]
    fn add(&self, pages: i64) {
        let pin = M::pin();
        self.count.parts.load(Ordering::Relaxed);
        // SAFETY: the pin makes this CPU the only one at its part.
        let part = unsafe { &mut *self.parts.get(&pin).write() };
        *part += pages;
        if part.abs() >= BATCH {
            let _lock = RawGuard::new(&self.count.lock);
            // SAFETY: under the lock.
            unsafe { *self.count.pages.write() += *part };
            // SAFETY: pinned, as above. Linux subtracts the part before it unlocks.
            unsafe { *self.parts.get(&pin).write() = 0 };
        }
    }
}

impl<M: Machine, Own: Reservation<M>> Part<M> for CommittedAs<M, Own> {
    type Config = Own::Config;

    fn new(own: &Own::Config, extent: Extent) -> Result<Self, Error> {
        Ok(CommittedAs {
            exact: Own::new(own, extent)?,
            count: Padded(Count {
                parts: M::AtomicUsize::new(0),
                lock: RawLock::new(),
                pages: M::Cell::new(0),
            }),
            parts: PerCpu::try_new(extent.cpus, |_| M::Cell::new(0))?,
        })
    }

    fn label(&self) {
        self.exact.label();
        M::label_value(&self.count, "vm_committed_as");
    }
}

impl<M: Machine, Own: Reservation<M>> Reservation<M> for CommittedAs<M, Own> {
    #[track_caller]
    fn reserve(&self, pages: u64) -> bool {
        let fits = self.exact.reserve(pages);
        if fits {
            self.add(pages as i64);
        }
        fits
    }

    #[track_caller]
    fn release(&self, pages: u64) {
        self.exact.release(pages);
        self.add(-(pages as i64));
    }

    fn reserved(&self) -> u64 {
        self.exact.reserved()
    }
}
