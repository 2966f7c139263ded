//! Two atomic counters.

use machine::{Atomic, AtomicInt, CpuRange, Machine, Ordering};
use sync::Padded;
use vm::policy::Reservation;

/// Reservation as FreeBSD has it today: an atomic addition to the system's counter,
/// and one to the user's.
///
/// FreeBSD adds first and takes the pages back if they were too many, so a large refusal
/// can make a small reservation beside it fail. The policy forbids that, so the system's
/// counter is raised by compare-and-swap: one locked instruction while nobody is in the
/// way, as the addition.
pub struct AtomicSwap<M: Machine> {
    limit: u64,
    system: Padded<M::AtomicU64>,
    user: Padded<M::AtomicU64>,
}

impl<M: Machine> Reservation<M> for AtomicSwap<M> {
    type Config = ();

    fn new(_: &(), _cpus: CpuRange, limit: u64) -> Self {
        AtomicSwap {
            limit,
            system: Padded(M::AtomicU64::new(0)),
            user: Padded(M::AtomicU64::new(0)),
        }
    }

    fn reserve(&self, pages: u64) -> bool {
        // The counters guard no other memory: relaxed throughout.
        let mut seen = self.system.load(Ordering::Relaxed);
        loop {
            let Some(sum) = seen.checked_add(pages).filter(|&sum| sum <= self.limit) else {
                return false;
            };
            match self
                .system
                .compare_exchange_weak(seen, sum, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(newer) => seen = newer,
            }
        }
        self.user.fetch_add(pages, Ordering::Relaxed);
        true
    }

    fn release(&self, pages: u64) {
        self.user.fetch_sub(pages, Ordering::Relaxed);
        let before = self.system.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(
            before >= pages,
            "released {pages} pages of {before} reserved"
        );
    }

    fn label(&self) {
        M::label_value(&self.system, "AtomicSwap.system");
        M::label_value(&self.user, "AtomicSwap.user");
    }

    fn reserved(&self) -> u64 {
        self.system.load(Ordering::Relaxed)
    }
}
