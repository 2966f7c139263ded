//! The VM's descriptor of each physical frame.

mod list;
#[cfg(test)]
mod model;

pub(crate) use list::{Last, PvList};

use crate::lock::PvLock;
use crate::pv::PvHead;
use crate::system::{Invalidation, PvLocking, System};
use core::num::NonZeroUsize;
use machine::{Atomic, AtomicInt, Atomics, Frame, Ordering, SharedCell, pte};
use sync::RawLock;

/// One frame's descriptor: 32 bytes with the default system, 0.8 % of memory.
pub struct Page<S: System> {
    /// The page's PV entries. Protected by `pv_lock`; while there are no references, the frame's
    /// owner's.
    pv: <S::Machine as Atomics>::Cell<PvHead>,
    /// The blocks that delayed invalidation must wait for. Written under `pv_lock`.
    pub(crate) invalidation: <S::Invalidation as Invalidation<S::Machine>>::Page,
    /// The other reference to the page, as an [`Identity`]'s bits. Written by a task that has the
    /// frame to itself, or under `pv_lock`.
    identity: <S::Machine as Atomics>::AtomicU64,
    /// Mappings and holders, which keep the page from being freed. 0 for a frame that is
    /// free or a table of any kind, so that no task can hold one by mistake.
    references: <S::Machine as Atomics>::AtomicU32,
    /// The lock of the PV list, unless the system has another ([`crate::system::PvLocking`]).
    pv_lock: PvLock<S::Machine>,
    /// [`Page::DIRTY`] and the others. Written under `pv_lock`.
    flags: <S::Machine as Atomics>::AtomicU8,
    /// The number of looks after which the reclaimer takes the page if it stays unused.
    age: <S::Machine as Atomics>::AtomicU8,
}

/// The reference to a page from outside the tables that map it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// None: private memory without a copy elsewhere.
    Private,
    /// The page has the content of this slot of the swap space.
    Swap(u32),
    /// An entry of an object's tree, by the entry's address.
    Object(NonZeroUsize),
}

impl Identity {
    /// In the lowest bit of a word; addresses of entries are even.
    const SWAP: u64 = 1;

    const fn to_bits(self) -> u64 {
        match self {
            Identity::Private => 0,
            Identity::Swap(slot) => (slot as u64) << 1 | Self::SWAP,
            Identity::Object(entry) => {
                debug_assert!(
                    entry.get() as u64 & Self::SWAP == 0,
                    "an entry is taken for a slot of the swap space"
                );
                entry.get() as u64
            }
        }
    }

    const fn from_bits(bits: u64) -> Self {
        match NonZeroUsize::new(bits as usize) {
            None => Identity::Private,
            Some(_) if bits & Self::SWAP != 0 => Identity::Swap((bits >> 1) as u32),
            Some(entry) => Identity::Object(entry),
        }
    }
}

impl<S: System> Page<S> {
    /// The page has been written since its dirtiness was last taken.
    pub const DIRTY: u8 = 1 << 0;
    /// The page has been used since it was last looked at.
    pub(crate) const REFERENCED: u8 = 1 << 1;
    /// A task writes the page out, or tries to: one at a time.
    pub(crate) const LAUNDRY: u8 = 1 << 2;
    /// The page's slot of the swap space lacks its content: the write failed. Only the reclaimer
    /// that has the page uses this flag.
    pub(crate) const UNWRITTEN: u8 = 1 << 3;
    /// The page may be forgotten as long as no task writes it.
    pub(crate) const LAZY: u8 = 1 << 4;

    pub(crate) fn new() -> Self {
        const {
            // A checker's atomics, and policies of other systems, are larger.
            let plain = size_of::<<S::Machine as Atomics>::AtomicU8>() == 1
                && size_of::<<S::Invalidation as Invalidation<S::Machine>>::Page>() == 8;
            assert!(!plain || size_of::<Self>() == 32);
        }
        Page {
            pv: <S::Machine as Atomics>::Cell::new(PvHead::EMPTY),
            invalidation: Default::default(),
            identity: <S::Machine as Atomics>::AtomicU64::new(0),
            references: <S::Machine as Atomics>::AtomicU32::new(0),
            pv_lock: PvLock::<S::Machine>::new(),
            flags: <S::Machine as Atomics>::AtomicU8::new(0),
            age: <S::Machine as Atomics>::AtomicU8::new(0),
        }
    }

    /// The page flags for an entry's accessed and dirty bits.
    pub(crate) fn harvest(entry: u64) -> u8 {
        let dirty = if entry & pte::DIRTY != 0 {
            Self::DIRTY
        } else {
            0
        };
        let used = if entry & pte::ACCESSED != 0 {
            Self::REFERENCED
        } else {
            0
        };
        dirty | used
    }

    /// Returns true if the PV list was locked a moment ago.
    #[cfg(test)]
    pub(crate) fn is_pv_locked(&self) -> bool {
        self.pv_lock.is_locked()
    }

    /// Returns true if the PV list was locked a moment ago by the lock that `locks` have for it.
    pub(crate) fn is_pv_locked_by(&self, locks: &S::PvLocks, frame: Frame) -> bool {
        locks.is_locked(frame, &self.pv_lock)
    }

    /// Flags as they were a moment ago.
    pub fn flags(&self) -> u8 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Returns true if the page lacked some of `flags` a moment ago.
    pub(crate) fn lacks(&self, flags: u8) -> bool {
        self.flags() & flags != flags
    }

    /// Returns true if the page lacks some of `flags`, for a task that has made stores to the page,
    /// or flushed the mapping by which they were made. If it lacks none, the task that takes the
    /// flags sees these stores.
    pub(crate) fn lacks_after_stores(&self, flags: u8) -> bool {
        // Pairs with the fence in `PvList::take_flags`: this sees the flag taken, or the task that
        // took it sees the stores.
        S::Machine::fence(Ordering::SeqCst);
        self.lacks(flags)
    }

    /// Makes the descriptor that of a page with one reference, in a freshly allocated frame.
    #[inline]
    pub(crate) fn begin(&self) {
        self.begin_with(PvHead::EMPTY);
    }

    /// Begins a page's life with these PV entries. No task can have held it before, so its list
    /// needs no lock.
    #[inline]
    pub(crate) fn begin_with(&self, list: PvHead) {
        machine::invariant!(
            S::Machine: self.references() == 0,
            "a page begins that tasks hold or have mapped"
        );
        // SAFETY: the frame is the caller's, and a task that finds the page by an old hint gets no
        // reference, without which none looks at the list. It may still name the entry of a mapping
        // that was frozen.
        unsafe { *self.pv.write() = list };
        self.flags.store(0, Ordering::Relaxed);
        self.age.store(0, Ordering::Relaxed);
        self.set_identity(Identity::Private);
        // Release: a task that retains the page through an old hint finds the rest begun.
        self.references.store(1, Ordering::Release);
    }

    /// The other reference to the page, as of a moment ago.
    pub(crate) fn identity(&self) -> Identity {
        // Acquire: pairs with the release in `set_identity`.
        Identity::from_bits(self.identity.load(Ordering::Acquire))
    }

    /// Sets the other reference to the page. By a task that has the frame to itself, or under the
    /// PV lock.
    pub(crate) fn set_identity(&self, identity: Identity) {
        // Release: the entry or slot that the identity names is there.
        self.identity.store(identity.to_bits(), Ordering::Release);
    }

    /// Adds flags to the page's. Under the PV lock, or by a task that has the frame
    /// to itself.
    pub(crate) fn add_flags(&self, flags: u8) {
        if flags != 0 {
            let now = self.flags.load(Ordering::Relaxed);
            self.flags.store(now | flags, Ordering::Relaxed);
        }
    }

    /// The number of further looks that the page survives unused. Written by the reclaimer only; a
    /// hint.
    pub(crate) fn age(&self) -> u8 {
        self.age.load(Ordering::Relaxed)
    }

    pub(crate) fn set_age(&self, age: u8) {
        self.age.store(age, Ordering::Relaxed);
    }

    /// The number of mappings and holders as of a moment ago.
    pub(crate) fn references(&self) -> u32 {
        // Acquire: pairs with the release of each reference that was dropped.
        self.references.load(Ordering::Acquire)
    }

    /// Drops all `count` references at once if there are no others; then the frame is the
    /// caller's, and no task can retain the page any more.
    #[inline]
    pub(crate) fn freeze(&self, count: u32) -> bool {
        debug_assert!(count > 0, "a page without references is frozen");
        // AcqRel: as in `release`.
        let frozen =
            self.references
                .compare_exchange(count, 0, Ordering::AcqRel, Ordering::Relaxed);
        frozen.is_ok()
    }

    /// Undoes a [`Page::freeze`] of `count` references.
    pub(crate) fn thaw(&self, count: u32) {
        machine::invariant!(S::Machine: self.references() == 0, "the page is not frozen");
        // Release: as in `begin`.
        self.references.store(count, Ordering::Release);
    }

    /// Adds a reference; the caller has one, or the PV lock with a mapping listed.
    pub(crate) fn retain(&self) {
        let old = self.references.fetch_add(1, Ordering::Relaxed);
        debug_assert!(old > 0, "a page is retained that may be another's by now");
        assert!(old < u32::MAX / 2, "page references overflow");
    }

    /// Adds a reference, unless the page has none any more. Returns true if it did.
    pub(crate) fn try_retain(&self) -> bool {
        let more = |now: u32| (now != 0).then_some(now + 1);
        // Acquire: pairs with the release in `begin`.
        let retained = self
            .references
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, more);
        retained.is_ok()
    }

    /// Drops a reference. Returns true if it was the last: then the frame is the caller's.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        // AcqRel: the task that drops the last one sees all that the others did to the page.
        let old = self.references.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(old > 0, "a page is released that has no reference");
        old == 1
    }
}
