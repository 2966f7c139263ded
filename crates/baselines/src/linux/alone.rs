//! The lock of a VMA, which a fault takes instead of the map's.
//!
//! It follows Linux 6.12: `vma_start_read`, `vma_start_write` and `vma_end_write_all`
//! (include/linux/mm.h, include/linux/mmap_lock.h), `lock_vma_under_rcu` (mm/memory.c).
//!
//! # Protocol
//! A VMA's lock is an rwsem and a number. A task that holds the map's lock for writing *locks* a
//! VMA: it takes the rwsem for writing, sets the VMA's number to the space's, and releases the
//! rwsem. It *unlocks* all VMAs by incrementing the space's number. So:
//!
//! - *A reader keeps writers out*: it holds the rwsem.
//! - *A writer keeps readers out*, though it does not hold the rwsem: a reader that has taken the
//!   rwsem **compares the numbers again**, and gives up if they are equal. Either it took the rwsem
//!   first, and the writer waits for it, or it sees the writer's number. If it sees the space's
//!   next number, it sees all that was done before.
//!
//! A fault looks the VMA up in the tree, in an epoch section, so it may find one that has left the
//! tree. The task that takes a VMA out has locked it, and marks it as detached before it unlocks; a
//! reader sees the mark with everything else. A VMA is freed after a grace period, and a reader
//! that holds the rwsem of one that is not detached keeps it in the tree. The rwsem is released
//! within a section, because the release still reads the lock when it is already free.

use super::list::Pinned;
use core::ptr::NonNull;
use machine::{Atomic, Machine, Ordering};
use sync::epoch::Domain;
use sync::lock_class;
use sync::rwlock::{RawRw, Rwsem};
use sync::watch::Watched;

lock_class!(
    /// The lock of a VMA. Readers fault in it, a writer is about to change it.
    pub VmaClass = "vm_lock", rank 19
);

/// The number of a space (`mm_lock_seq`). The VMAs with this number are locked.
pub struct LockSeq<M: Machine>(M::AtomicU64);

/// The lock of a VMA: 24 bytes in the VMA, and the rwsem on lines of its own, as in Linux.
pub struct VmaLock<M: Machine, const SPIN: u64 = 10_000> {
    /// `vm_lock_seq`. Written under the rwsem, for writing.
    seq: M::AtomicU64,
    /// Written by the task that has locked the VMA.
    detached: M::AtomicU64,
    sem: Pinned<Sem<M, SPIN>>,
}

#[repr(align(64))]
struct Sem<M: Machine, const SPIN: u64>(Watched<M, Rwsem<M, SPIN>, VmaClass>);

/// A VMA locked by a fault.
#[must_use = "the lock is released when this is dropped"]
pub struct VmaHeld<'a, M: Machine, const SPIN: u64 = 10_000> {
    sem: NonNull<Sem<M, SPIN>>,
    domain: &'a Domain<M>,
}

impl<M: Machine> LockSeq<M> {
    /// The number of a space without locked VMAs.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        LockSeq(M::AtomicU64::new(1))
    }

    /// Unlocks all VMAs. Under the map's lock for writing.
    pub fn unlock_all(&self) {
        let next = self.0.load(Ordering::Relaxed) + 1;
        // Release: pairs with the acquire in `VmaLock::read`.
        self.0.store(next, Ordering::Release);
    }
}

impl<M: Machine, const SPIN: u64> VmaLock<M, SPIN> {
    /// The lock of a VMA that is in no tree yet.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let sem = Pinned::new(Sem(RawRw::new()));
        M::label_value(&*sem, "vm_lock");
        VmaLock {
            seq: M::AtomicU64::new(0),
            detached: M::AtomicU64::new(0),
            sem,
        }
    }

    /// Locks the VMA, until [`LockSeq::unlock_all`]. Under the map's lock for writing.
    #[track_caller]
    pub fn write(&self, space: &LockSeq<M>) {
        let now = space.0.load(Ordering::Relaxed);
        if self.seq.load(Ordering::Relaxed) != now {
            self.sem.0.write();
            self.seq.store(now, Ordering::Relaxed);
            // SAFETY: acquired above.
            unsafe { self.sem.0.write_unlock() };
        }
    }

    /// Marks the VMA, which is locked, as detached: it leaves the tree.
    pub fn detach(&self) {
        // Relaxed: it is locked, so no fault reads it before it is unlocked.
        self.detached.store(1, Ordering::Relaxed);
    }

    /// Locks the VMA for a fault, unless it is locked for a change, or has left the tree. In a
    /// section of `domain`.
    pub fn read<'a>(
        &self,
        space: &LockSeq<M>,
        domain: &'a Domain<M>,
    ) -> Option<VmaHeld<'a, M, SPIN>> {
        let is_locked = self.seq.load(Ordering::Relaxed) == space.0.load(Ordering::Relaxed);
        if is_locked || !self.sem.0.try_read() {
            return None;
        }
        let held = VmaHeld {
            sem: NonNull::from(&*self.sem),
            domain,
        };
        // Acquire: pairs with the release in `unlock_all`.
        let space = space.0.load(Ordering::Acquire);
        let is_unlocked = self.seq.load(Ordering::Relaxed) != space;
        let is_in_tree = self.detached.load(Ordering::Relaxed) == 0;
        (is_unlocked && is_in_tree).then_some(held)
    }
}

impl<M: Machine, const SPIN: u64> Drop for VmaHeld<'_, M, SPIN> {
    fn drop(&mut self) {
        let _section = self.domain.enter();
        // SAFETY: the rwsem was acquired when this was made, and stays as long as the section.
        unsafe { self.sem.as_ref().0.read_unlock() };
    }
}
