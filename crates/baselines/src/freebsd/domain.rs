//! Memory domains: free pages by NUMA node, and the pages that objects have reserved (FreeBSD 14,
//! sys/vm/vm_page.c, vm_phys.c, vm_reserv.c).
//!
//! A page of an object comes from a *reservation*, 2 MiB that are taken together when the first
//! page of a 2 MiB of the object is needed (`vm_reserv_alloc_page`), and go back together with the
//! last (`vm_reserv_free_page`). Both take the domain's free lock. Each allocation or release of a
//! page changes the domain's count of free pages by an atomic operation (`vm_domain_allocate`,
//! `vm_domain_freecnt_inc`): all CPUs of a node write that line in each fault. Reservations that
//! are used in part are in a list, which is locked when one is added or removed.
//!
//! All VMs of a machine share its domains, as they share its memory.
//!
//! The differences: a page's domain is the node of the CPU that asks for it; a reservation's own
//! lock, under which two CPUs meet only if they fault in the same 2 MiB of an object, is that
//! object's; a reservation enters the list of those used in part once, where FreeBSD moves it to
//! the end of the list, at most once a tick; a shortage of memory breaks no reservation.

use core::array;
use machine::{Atomic, AtomicInt, Machine, Ordering};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{Padded, RawGuard, RawLock, lock_class};

lock_class!(
    /// `vmd_free_mtx`: the lock of a domain's free pages.
    pub DomainFree = "vm domain free", rank 48
);
lock_class!(
    /// The lock of a domain's list of reservations that are used in part (`rvd_lock`).
    pub PartlyPopulated = "vm reserv domain", rank 47
);

/// The most domains (`MAXMEMDOM`, in a kernel for NUMA).
pub(super) const DOMAINS: usize = 8;

pub struct MemoryDomains<M: Machine>([Domain<M>; DOMAINS]);

/// A domain: its locks and its count are on lines of their own, as in FreeBSD.
pub(super) struct Domain<M: Machine> {
    free: Padded<Watched<M, FreebsdMutex<M>, DomainFree>>,
    partly: Padded<Watched<M, FreebsdMutex<M>, PartlyPopulated>>,
    /// The change of `vmd_free_count` since the start. It guards no other memory: relaxed.
    count: Padded<M::AtomicU64>,
}

/// The free pages of a domain, locked.
pub type FreeHeld<'a, M> = RawGuard<'a, M, Watched<M, FreebsdMutex<M>, DomainFree>>;

impl<M: Machine> MemoryDomains<M> {
    /// The domains of the machine.
    pub(super) fn of_machine() -> &'static Self {
        M::anchor().get_or_init(|| {
            MemoryDomains(array::from_fn(|_| Domain {
                free: Padded(RawLock::new()),
                partly: Padded(RawLock::new()),
                count: Padded(M::AtomicU64::new(0)),
            }))
        })
    }

    pub(super) fn label(&self) {
        for domain in &self.0 {
            M::label_value(&domain.free, "vmd_free_mtx");
            M::label_value(&domain.partly, "vm_reserv_domain");
            M::label_value(&domain.count, "vmd_free_count");
        }
    }

    /// The number of the calling CPU's domain.
    pub(super) fn here() -> usize {
        M::numa_node() % DOMAINS
    }

    pub(super) fn of(&self, domain: usize) -> &Domain<M> {
        &self.0[domain]
    }
}

impl<M: Machine> Domain<M> {
    /// Locks the free pages.
    #[track_caller]
    pub(super) fn lock_free(&self) -> FreeHeld<'_, M> {
        RawGuard::new(&*self.free)
    }

    /// Counts `pages` pages as no longer free.
    pub(super) fn taken(&self, pages: u64) {
        self.count.fetch_sub(pages, Ordering::Relaxed);
    }

    /// Counts `pages` pages as free again.
    pub(super) fn freed(&self, pages: u64) {
        self.count.fetch_add(pages, Ordering::Relaxed);
    }

    /// Takes the lock once for a reservation that is added to the list of those used in part, or
    /// removed.
    #[track_caller]
    pub(super) fn move_reservation(&self) {
        drop(RawGuard::new(&*self.partly));
    }
}
