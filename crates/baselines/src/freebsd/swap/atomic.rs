//! Swap reservation by two atomic counters.

use machine::{Atomic, AtomicInt, Machine, Ordering};
use sync::Padded;
use vm::Error;
use vm::system::{Extent, Part, Reservation};

/// Reservation as in FreeBSD today: an atomic addition to the system's counter, and one to the
/// user's.
///
/// FreeBSD adds first and subtracts the pages again if they were too many, so a large refusal can
/// make a small, concurrent reservation fail. [`Reservation`] forbids that, so the system's counter
/// is raised by compare-and-swap: one locked instruction while no other CPU interferes, like the
/// addition.
pub struct AtomicSwap<M: Machine> {
    limit: u64,
    system: Padded<M::AtomicU64>,
    user: Padded<M::AtomicU64>,
}

impl<M: Machine> Part<M> for AtomicSwap<M> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        Ok(AtomicSwap {
            limit: extent.swap,
            system: Padded(M::AtomicU64::new(0)),
            user: Padded(M::AtomicU64::new(0)),
        })
    }

    fn label(&self) {
        M::label_value(&self.system, "AtomicSwap.system");
        M::label_value(&self.user, "AtomicSwap.user");
    }
}

impl<M: Machine> Reservation<M> for AtomicSwap<M> {
    fn reserve(&self, pages: u64) -> bool {
        // The counters guard no other memory: relaxed throughout.
        let sum = |seen: u64| seen.checked_add(pages).filter(|&sum| sum <= self.limit);
        let reserved = self
            .system
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum)
            .is_ok();
        if reserved {
            self.user.fetch_add(pages, Ordering::Relaxed);
        }
        reserved
    }

    fn release(&self, pages: u64) {
        self.user.fetch_sub(pages, Ordering::Relaxed);
        let before = self.system.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(
            before >= pages,
            "released {pages} pages of {before} reserved"
        );
    }

    fn reserved(&self) -> u64 {
        self.system.load(Ordering::Relaxed)
    }
}
