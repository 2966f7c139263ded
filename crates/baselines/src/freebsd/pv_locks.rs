//! Locks of PV lists that pages share, as FreeBSD's pmap has them.
//!
//! Since 2012 (r236534) a list is protected by one of `NPV_LIST_LOCKS` = `MAXCPU` = 256 rwlocks,
//! chosen by the physical address: all pages of 2 MiB have the same one, and so have those of each
//! 256th other 2 MiB. A `struct rwlock` takes 32 bytes, so two of them lie on a line. A kernel built for
//! NUMA has one for each 2 MiB since October 2019 (`struct pmap_large_md_page`), 64 bytes with
//! the superpages' list and the generation of delayed invalidation. The pmap takes them for writing
//! whenever it changes a list; who removes a range keeps the lock from page to page as
//! long as it is the same one (`CHANGE_PV_LIST_LOCK`).
//!
//! What differs: a lock is FreeBSD's mutex. A writer of an rwlock spins and blocks as the taker of
//! a mutex does, and the VM has no readers of lists. The generations are elsewhere
//! ([`super::generation`]).

use super::generation::{PV_LIST_LOCKS, REGION_SHIFT, regions};
use alloc::boxed::Box;
use machine::{CpuRange, Frame, Machine};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{RawLock, lock_class};
use vm::lock::PvLock;
use vm::policy::PvLocking;

lock_class!(
    /// The PV lists of the pages of 2 MiB, and of others.
    pub PvListLock = "pv list lock", rank 40
);

type ListLock<M> = Watched<M, FreebsdMutex<M>, PvListLock>;

/// How many locks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListLocks {
    /// 256, two on a line, 2 MiB regions hashed onto them.
    #[default]
    Hashed,
    /// One for each 2 MiB, on a line of its own.
    PerRegion,
}

/// Shared locks of PV lists: 8 KiB, or 64 bytes for each 2 MiB.
pub enum PvListLocks<M: Machine> {
    /// See [`ListLocks::Hashed`].
    Hashed(Box<[Pair<M>]>),
    /// See [`ListLocks::PerRegion`].
    PerRegion(Box<[Alone<M>]>),
}

/// Two locks on a line.
#[repr(align(64))]
pub struct Pair<M: Machine>([Rwlock<M>; 2]);

/// A lock on a line.
#[repr(align(64))]
pub struct Alone<M: Machine>(ListLock<M>);

/// As large as a `struct rwlock`.
#[repr(align(32))]
struct Rwlock<M: Machine>(ListLock<M>);

/// A list, locked with all others that have its lock.
#[must_use = "the lock is released when this is dropped"]
pub struct PvListHeld<'a, M: Machine> {
    lock: &'a ListLock<M>,
    held: Option<<ListLock<M> as RawLock<M>>::Held>,
}

impl<M: Machine> PvListLocks<M> {
    /// Which lock is the frame's.
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

// SAFETY: a frame's lock is always the same one, and excludes.
unsafe impl<M: Machine> PvLocking<M> for PvListLocks<M> {
    type Config = ListLocks;
    type Held<'a> = PvListHeld<'a, M>;

    fn new(how: &ListLocks, _cpus: CpuRange, frames: usize) -> Self {
        match how {
            ListLocks::Hashed => {
                let lock = || Rwlock(RawLock::new());
                let pairs = (0..PV_LIST_LOCKS / 2).map(|_| Pair([lock(), lock()]));
                PvListLocks::Hashed(pairs.collect())
            }
            ListLocks::PerRegion => {
                let locks = (0..regions(frames)).map(|_| Alone(RawLock::new()));
                PvListLocks::PerRegion(locks.collect())
            }
        }
    }

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
        let lock = self.of(frame);
        PvListHeld {
            lock,
            held: Some(lock.lock()),
        }
    }

    fn label(&self) {
        match self {
            PvListLocks::Hashed(locks) => M::label_value(&**locks, "pv list locks"),
            PvListLocks::PerRegion(locks) => M::label_value(&**locks, "pv list locks"),
        }
    }
}

impl<M: Machine> Drop for PvListHeld<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // SAFETY: from the acquisition when this was made, and given back once.
            unsafe { self.lock.unlock(held) };
        }
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
            let hashed = PvListLocks::<Hosted>::new(&ListLocks::Hashed, cpus, 1 << 20);
            assert!(hashed.is_same(Frame(0), Frame(511)));
            assert!(!hashed.is_same(Frame(511), Frame(512)));
            assert!(hashed.is_same(region(3), region(3 + 256)));
            let alone = PvListLocks::<Hosted>::new(&ListLocks::PerRegion, cpus, 1 << 20);
            assert!(alone.is_same(Frame(0), Frame(511)));
            assert!(!alone.is_same(region(3), region(3 + 256)));
        });
    }
}
