//! The locks of Linux that are rwsems: `mmap_lock` (`mmap_sem` before 5.8) and, in newer versions,
//! those of anon_vma roots and of files' mappings.

use machine::{Atomic, Machine, Ordering};
use sync::RawLock;
use sync::lock_class;
use sync::rwlock::{RawReadGuard, RawRw, Rwsem};
use sync::watch::Watched;

lock_class!(
    /// A space's `mmap_lock`. Readers fault, writers change the mappings.
    pub MmapLockClass = "mmap_lock", rank 10
);

/// The lock of a space's map. Page tables have no lock here: Linux has one for each table, for
/// which the lock of the slot stands.
///
/// The layout is that of `mm_struct`, where the lock begins at the last word of a cache line: the
/// count is on one line, with `pgd`; the owner and the spinners' queue are on the next. 128 bytes.
#[repr(C, align(64))]
pub struct MmapLock<M: Machine> {
    /// The rest of the line before the lock.
    _before: [u64; 3],
    /// Where the page tables begin. Never changes, but lies in the line of the lock's count, so
    /// each walk of the tables reads that line.
    pgd: M::AtomicUsize,
    _between: [u64; 3],
    lock: Lock<M>,
}

type Lock<M> = Watched<M, Rwsem<M>, MmapLockClass>;

/// An operation's hold on the lock.
#[derive(Default)]
#[must_use = "the lock is released when this is dropped"]
pub enum MmapHeld<'a, M: Machine> {
    /// The lock is not held.
    #[default]
    Nothing,
    /// Acquired for reading.
    Read(RawReadGuard<'a, M, Lock<M>>),
    /// Acquired for writing.
    Write(MmapWrite<'a, M>),
}

/// The lock, acquired for writing.
#[must_use = "the lock is released when this is dropped"]
pub struct MmapWrite<'a, M: Machine> {
    lock: &'a Lock<M>,
    /// True if the lock has been downgraded, so it is held for reading.
    is_downgraded: bool,
}

impl<M: Machine> MmapWrite<'_, M> {
    /// Turns the acquisition for writing into one for reading (`mmap_write_downgrade`).
    #[inline]
    #[track_caller]
    pub fn downgrade(&mut self) {
        // SAFETY: this guard holds the lock for writing.
        self.is_downgraded = unsafe { self.lock.try_downgrade() };
    }

    /// Returns true if the lock has been downgraded, so it is held for reading.
    pub(super) fn is_downgraded(&self) -> bool {
        self.is_downgraded
    }
}

impl<M: Machine> Drop for MmapWrite<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: acquired for writing when this was made, and downgraded if it says so.
        unsafe {
            if self.is_downgraded {
                self.lock.read_unlock()
            } else {
                self.lock.write_unlock()
            }
        }
    }
}

impl<M: Machine> MmapLock<M> {
    /// A free lock.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        MmapLock {
            _before: [0; 3],
            pgd: M::AtomicUsize::new(0),
            _between: [0; 3],
            lock: RawRw::new(),
        }
    }

    pub(super) fn label(&self) {
        M::label_value(&self.lock, "mmap_lock");
    }

    /// Acquires the lock for reading.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> RawReadGuard<'_, M, Lock<M>> {
        RawReadGuard::new(&self.lock)
    }

    /// Acquires the lock for writing.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> MmapWrite<'_, M> {
        self.lock.write();
        MmapWrite {
            lock: &self.lock,
            is_downgraded: false,
        }
    }

    /// Reads where the tables begin (`pgd_offset`).
    #[inline]
    pub(super) fn walk_tables(&self) {
        self.pgd.load(Ordering::Relaxed);
    }
}

/// An rwsem that is acquired for writing only, as all changes of lists do. A walk of the reverse
/// map acquires it for writing too, where Linux reads.
pub struct WriteSem<M: Machine>(Rwsem<M>);

// SAFETY: an acquisition is one for writing.
unsafe impl<M: Machine> RawLock<M> for WriteSem<M> {
    type Held = ();
    const NAME: &'static str = "rwsem";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        WriteSem(RawRw::new())
    }

    #[inline]
    fn lock(&self) {
        self.0.write();
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.0.try_write().then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller has the acquisition.
        unsafe { self.0.write_unlock() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
