//! A change of a space's VMAs, under the map's lock for writing.

use super::Version;
use super::alone::LockSeq;
use super::anon_vma::AnonVmas;
use super::list::Pinned;
use super::maple::Maple;
use super::vma::Vma;
use alloc::boxed::Box;
use core::ptr::{from_ref, null_mut};
use machine::{Atomic, Machine, Ordering, VaRange};
use sync::epoch::Domain;

/// The data of faults that do not take the map's lock, on one cache line.
#[repr(align(64))]
pub(super) struct Alone<M: Machine> {
    /// The VMAs that are in the map.
    pub(super) tree: Maple<M>,
    pub(super) seq: LockSeq<M>,
}

impl<M: Machine> Alone<M> {
    pub(super) fn new() -> Pinned<Self> {
        let alone = Pinned::new(Alone {
            tree: Maple::new(),
            seq: LockSeq::new(),
        });
        M::label_value(&*alone, "mm_struct");
        alone
    }
}

/// The structures that change with the map.
pub(super) struct Change<'a, M: Machine, V: Version> {
    pub(super) anon: &'a AnonVmas<M, V>,
    /// `map_count`, `total_vm`: the words of `mm_struct` that a change of the map writes in
    /// addition to the lock.
    pub(super) counts: &'a M::AtomicUsize,
    /// For faults without the map's lock, with the domain of their epoch sections; `None` if there
    /// are none.
    pub(super) alone: Option<(&'a Alone<M>, &'a Domain<M>)>,
}

impl<M: Machine, V: Version> Change<'_, M, V> {
    /// Keeps faults out of `vma` until the change is over.
    #[track_caller]
    pub(super) fn lock(&self, vma: &Vma<M, V>) {
        if let (Some((alone, _)), Some(lock)) = (self.alone, vma.lock()) {
            lock.write(&alone.seq);
        }
    }

    /// Writes both neighbours of a VMA that is inserted or removed, if VMAs are nodes of a
    /// red-black tree and of a list.
    pub(super) fn relinks(&self, before: Option<&Vma<M, V>>, next: Option<&Vma<M, V>>) {
        // Relaxed: under the map's lock.
        let changes = self.counts.load(Ordering::Relaxed);
        self.counts.store(changes + 1, Ordering::Relaxed);
        if self.alone.is_none() {
            before.into_iter().chain(next).for_each(Vma::relink);
        }
    }

    /// Stores that `vma`, which is or will be in the map, covers `range`.
    pub(super) fn covers(&self, range: VaRange, vma: &Vma<M, V>) {
        self.store(range, from_ref(vma).cast_mut().cast());
    }

    /// Stores that no VMA covers `range`.
    pub(super) fn uncovers(&self, range: VaRange) {
        self.store(range, null_mut());
    }

    fn store(&self, range: VaRange, vma: *mut ()) {
        if let Some((alone, domain)) = self.alone {
            alone.tree.store(domain, range, vma);
        }
    }

    /// Frees `vma`, which is locked and no longer in the map.
    pub(super) fn retire(&self, vma: Pinned<Vma<M, V>>) {
        if let (Some((_, domain)), Some(lock)) = (self.alone, vma.lock()) {
            lock.detach();
            domain.defer_drop(Box::new(vma));
        }
    }
}
