//! Locks of PV lists that pages share, as in FreeBSD's pmap.
//!
//! Since 2012 (r236534) one of `NPV_LIST_LOCKS` = `MAXCPU` = 256 rwlocks protects a list, chosen by
//! the physical address: all pages of a 2 MiB region share one, also with the pages of every 256th
//! other region. A `struct rwlock` takes 32 bytes, so two of them lie on a cache line. A kernel
//! built for NUMA has one for each 2 MiB since October 2019 (`struct pmap_large_md_page`), 64 bytes
//! with the superpages' list and the generation of delayed invalidation. The pmap takes them for
//! writing whenever it changes a list; an operation that removes a range keeps the lock from page
//! to page as long as it is the same one (`CHANGE_PV_LIST_LOCK`).
//!
//! The difference: a lock is FreeBSD's mutex. A writer of an rwlock spins and blocks like a
//! mutex's, and the VM has no readers of lists. The generations are elsewhere
//! ([`super::generation`]).

use super::generation::{PV_LIST_LOCKS, REGION_SHIFT, regions};
use alloc::boxed::Box;
use machine::{Frame, Machine};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{RawGuard, RawLock, lock_class};
use vm::Error;
use vm::heap::filled;
use vm::lock::PvLock;
use vm::system::{Extent, Part, PvLocking};

lock_class!(
    /// The lock of the PV lists of a 2 MiB region's pages, and perhaps of other regions.
    pub PvListLock = "pv list lock", rank 40
);

type ListLock<M> = Watched<M, FreebsdMutex<M>, PvListLock>;

/// The number of the locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListLocks {
    /// 256, two on a cache line, 2 MiB regions hashed onto them.
    #[default]
    Hashed,
    /// One for each 2 MiB, on a line of its own.
    PerRegion,
}

/// Shared locks of PV lists: 8 KiB, or 64 bytes for each 2 MiB.
pub enum PvListLocks<M: Machine> {
    /// For [`ListLocks::Hashed`].
    Hashed(Box<[Pair<M>]>),
    /// For [`ListLocks::PerRegion`].
    PerRegion(Box<[Alone<M>]>),
}

/// Two locks on a cache line.
#[repr(align(64))]
pub struct Pair<M: Machine>([Rwlock<M>; 2]);

/// A lock on a cache line of its own.
#[repr(align(64))]
pub struct Alone<M: Machine>(ListLock<M>);

/// A lock of the size of a `struct rwlock`.
#[repr(align(32))]
struct Rwlock<M: Machine>(ListLock<M>);

/// A locked list, and with it all others that share its lock.
pub type PvListHeld<'a, M> = RawGuard<'a, M, ListLock<M>>;

impl<M: Machine> PvListLocks<M> {
    /// The index of the frame's lock.
    #[inline]
    fn index(&self, frame: Frame) -> usize {
        let region = frame.index() >> REGION_SHIFT;
        match self {
            PvListLocks::Hashed(_) => region % PV_LIST_LOCKS,
            PvListLocks::PerRegion(locks) => region.min(locks.len() - 1),
        }
    }

    #[inline]
    fn of(&self, frame: Frame) -> &ListLock<M> {
        let index = self.index(frame);
        match self {
            PvListLocks::Hashed(pairs) => &pairs[index / 2].0[index % 2].0,
            PvListLocks::PerRegion(locks) => &locks[index].0,
        }
    }
}

impl<M: Machine> Part<M> for PvListLocks<M> {
    type Config = ListLocks;

    fn new(how: &ListLocks, extent: Extent) -> Result<Self, Error> {
        Ok(match how {
            ListLocks::Hashed => {
                let lock = || Rwlock(RawLock::new());
                let pair = || Pair([lock(), lock()]);
                PvListLocks::Hashed(filled(PV_LIST_LOCKS / 2, pair)?)
            }
            ListLocks::PerRegion => {
                let lock = || Alone(RawLock::new());
                PvListLocks::PerRegion(filled(regions(extent.frames), lock)?)
            }
        })
    }

    fn label(&self) {
        match self {
            PvListLocks::Hashed(locks) => M::label_value(&**locks, "pv list locks"),
            PvListLocks::PerRegion(locks) => M::label_value(&**locks, "pv list locks"),
        }
    }
}

// SAFETY: a frame always has the same lock, and the lock excludes.
unsafe impl<M: Machine> PvLocking<M> for PvListLocks<M> {
    type Held<'a> = PvListHeld<'a, M>;

    #[inline]
    fn is_per_block(&self) -> bool {
        true
    }

    #[inline]
    fn is_same(&self, one: Frame, other: Frame) -> bool {
        self.index(one) == self.index(other)
    }

    #[inline]
    #[track_caller]
    fn lock<'a>(&'a self, frame: Frame, _own: &'a PvLock<M>) -> PvListHeld<'a, M> {
        RawGuard::new(self.of(frame))
    }

    #[inline]
    #[track_caller]
    fn try_lock<'a>(&'a self, frame: Frame, _own: &'a PvLock<M>) -> Option<PvListHeld<'a, M>> {
        RawGuard::try_new(self.of(frame))
    }

    fn is_locked(&self, frame: Frame, _own: &PvLock<M>) -> bool {
        self.of(frame).is_locked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosted::Hosted;
    use machine::Topology;

    #[test]
    fn two_locks_share_a_line_and_a_region_has_its_own() {
        assert_eq!(size_of::<Pair<Hosted>>(), 64);
        assert_eq!(size_of::<Alone<Hosted>>(), 64);
    }

    #[test]
    fn who_shares_a_lock() {
        Hosted::new(1).on_cpu(0, || {
            let region = |index: u32| Frame(index << REGION_SHIFT);
            let cpus = Hosted::new(1).cpus();
            let hashed =
                PvListLocks::<Hosted>::new(&ListLocks::Hashed, Extent::new(cpus, 1 << 20, 0))
                    .expect("room");
            assert!(hashed.is_same(Frame(0), Frame(511)));
            assert!(!hashed.is_same(Frame(511), Frame(512)));
            assert!(hashed.is_same(region(3), region(3 + 256)));
            let alone =
                PvListLocks::<Hosted>::new(&ListLocks::PerRegion, Extent::new(cpus, 1 << 20, 0))
                    .expect("room");
            assert!(alone.is_same(Frame(0), Frame(511)));
            assert!(!alone.is_same(region(3), region(3 + 256)));
        });
    }
}
