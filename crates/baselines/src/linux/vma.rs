//! A VMA (`vm_area_struct`): a run of addresses that are mapped with the same attributes.

use super::Version;
use super::alone::VmaLock;
use super::anon_vma::{AnonVmaRef, Avc};
use super::file::FileRef;
use super::list::{Node, Pinned};
use alloc::vec::Vec;
use core::ptr::{NonNull, null_mut};
use machine::{Atomic, Machine, Ordering, PAGE_SHIFT, SharedCell, VaRange};
use vm::Prot;

/// A VMA's attributes other than its range and its rights.
pub(super) struct Kind<M: Machine, V: Version> {
    pub(super) shared: bool,
    pub(super) file: Option<FileRef<M, V>>,
}

/// A VMA. Its range, which walkers of anon_vma lists read, is atomic. It changes under the map's
/// lock for writing, and also under the root's where a walker might miss a page.
#[repr(C, align(64))]
pub(super) struct Vma<M: Machine, V: Version> {
    start: M::AtomicUsize,
    end: M::AtomicUsize,
    /// How often the links to other VMAs have changed: `vm_next`, `vm_prev` and `vm_rb`, on the
    /// line of the range. Guarded by the map's lock.
    links: M::AtomicUsize,
    /// The rights of tasks. Guarded by the map's lock.
    prot: M::Cell<Prot>,
    pub(super) kind: Kind<M, V>,
    /// Its node in the list of all mappings of the file. Guarded by that list's lock.
    pub(super) shared: Node<M>,
    /// The chain: its nodes on the lists of anon_vmas ([`super::anon_vma`]), newest last.
    pub(super) chain: M::Cell<Vec<Pinned<Avc<M>>>>,
    /// The anon_vma of new pages ([`super::anon_vma`]); null before the first page.
    anon_vma: M::AtomicPtr,
    /// The index of the page at `start`: in the file or, for anonymous memory, in the space in
    /// which it was first mapped.
    first: M::AtomicU64,
    /// The VMA's own lock, in versions whose faults do not take the map's.
    lock: Option<VmaLock<M>>,
}

impl<M: Machine, V: Version> Vma<M, V> {
    /// A VMA, with a lock of its own if faults do not take the map's.
    pub(super) fn new(
        range: VaRange,
        prot: Prot,
        kind: Kind<M, V>,
        first: u64,
        locks: bool,
    ) -> Pinned<Self> {
        let vma = Pinned::new(Vma {
            start: M::AtomicUsize::new(range.start),
            end: M::AtomicUsize::new(range.end),
            links: M::AtomicUsize::new(0),
            prot: M::Cell::new(prot),
            kind,
            shared: Node::new(),
            chain: M::Cell::new(Vec::new()),
            anon_vma: M::AtomicPtr::new(null_mut()),
            first: M::AtomicU64::new(first),
            lock: locks.then(VmaLock::new),
        });
        M::label_value(&*vma, "vm_area_struct");
        vma
    }

    /// Writes the links to other VMAs: a neighbour was inserted or removed.
    pub(super) fn relink(&self) {
        let links = self.links.load(Ordering::Relaxed);
        self.links.store(links + 1, Ordering::Relaxed);
    }

    /// Its own lock, if faults do not take the map's.
    pub(super) fn lock(&self) -> Option<&VmaLock<M>> {
        self.lock.as_ref()
    }

    pub(super) fn range(&self) -> VaRange {
        VaRange {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
        }
    }

    /// The rights of tasks. Under the map's lock.
    pub(super) fn prot(&self) -> Prot {
        // SAFETY: the map is locked, so no task changes the rights.
        unsafe { *self.prot.read() }
    }

    /// Sets the rights. Under the map's lock for writing.
    pub(super) fn set_prot(&self, prot: Prot) {
        // SAFETY: the map is locked for writing, so only this task accesses the rights.
        unsafe { *self.prot.write() = prot };
    }

    /// The index of the page at the start.
    pub(super) fn first(&self) -> u64 {
        self.first.load(Ordering::Relaxed)
    }

    /// Moves the borders. The pages keep their addresses.
    pub(super) fn set_range(&self, range: VaRange) {
        let old = self.range();
        let moved = (range.start as isize - old.start as isize) >> PAGE_SHIFT;
        if moved != 0 {
            let first = self.first().wrapping_add_signed(moved as i64);
            self.first.store(first, Ordering::Relaxed);
            self.start.store(range.start, Ordering::Relaxed);
        }
        self.end.store(range.end, Ordering::Relaxed);
    }

    /// The index of the page at `address`.
    pub(super) fn index_of(&self, address: usize) -> u64 {
        let pages = (address - self.range().start) >> PAGE_SHIFT;
        self.first() + pages as u64
    }

    /// The address at which the page with this index would be mapped.
    pub(super) fn address_of(&self, index: u64) -> Option<usize> {
        let VaRange { start, end } = self.range();
        let bytes = index.wrapping_sub(self.first()) << PAGE_SHIFT;
        let address = start.wrapping_add(bytes as usize);
        (start..end).contains(&address).then_some(address)
    }

    pub(super) fn anon_vma(&self) -> Option<AnonVmaRef<M, V>> {
        // Acquire: pairs with the release in `set_anon_vma`, for the chain.
        NonNull::new(self.anon_vma.load(Ordering::Acquire).cast())
    }

    pub(super) fn set_anon_vma(&self, to: AnonVmaRef<M, V>) {
        // Release: a CPU that finds it finds the chain.
        self.anon_vma.store(to.as_ptr().cast(), Ordering::Release);
    }

    pub(super) fn forget_anon_vma(&self) {
        self.anon_vma.store(null_mut(), Ordering::Relaxed);
    }

    /// Returns true if the chain has one node: nothing was inherited.
    pub(super) fn is_alone(&self) -> bool {
        // SAFETY: it has an anon_vma, so the chain changes only under the map's lock for writing,
        // which the caller excludes.
        self.anon_vma().is_some() && unsafe { (*self.chain.read()).len() == 1 }
    }

    /// Returns true if `next` continues this VMA where it ends; with `alike`, only if the rights
    /// are the same too.
    pub(super) fn goes_on_in(&self, next: &Self, alike: bool) -> bool {
        let range = self.range();
        range.end == next.range().start
            && self.kind.is_same(&next.kind)
            && (!alike || self.prot() == next.prot())
            && self.first() + (range.pages() as u64) == next.first()
    }
}

impl<M: Machine, V: Version> Kind<M, V> {
    /// Returns true if both map the same object or both are anonymous.
    fn is_same(&self, other: &Self) -> bool {
        let file = match (&self.file, &other.file) {
            (None, None) => true,
            (Some(this), Some(other)) => this.is_same_file(other),
            _ => false,
        };
        file && self.shared == other.shared
    }
}

impl<M: Machine, V: Version> Clone for Kind<M, V> {
    fn clone(&self) -> Self {
        Kind {
            shared: self.shared,
            file: self.file.clone(),
        }
    }
}
