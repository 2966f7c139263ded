//! anon_vmas and their chains: how Linux finds the mappings of an anonymous page.
//!
//! ```text
//!             anon_vma A (parent's)          anon_vma B (child's, root: A)
//!                 │ list                         │ list
//!   VMA ── avc ───┤                              │
//!   child's VMA ── avc ─┘      ── avc ───────────┘
//! ```
//! A page names the anon_vma of the VMA in which it was made. All VMAs that may map it, by fork,
//! by a split, by a move of a border, have a chain node (*avc*) on that anon_vma's list. A fork
//! gives each child's VMA a node on every list that its parent's VMA is on, and an anon_vma of its
//! own. All lists of a family are guarded by one lock, that of the *root*: the anon_vma of the
//! ancestor that touched the memory first after its exec.
//!
//! # Protocol
//! - A list, and what a node says, change under the root's lock.
//! - A VMA's chain changes under its space's map lock for writing; or, while it has none, at the
//!   first fault under the root's lock and the space's page table lock.
//! - Each child of a root, and each user of an anon_vma, has a reference; the memory of an
//!   anon_vma is one for as long as the VM lives (`SLAB_DESTROY_BY_RCU` in Linux), so a page may
//!   name one that has gone: who comes from a page takes a reference if there still is one.
//!
//! Linux 2.6.39 and 3.0, `mm/rmap.c`: `anon_vma_prepare`, `anon_vma_clone`, `anon_vma_fork`,
//! `unlink_anon_vmas`, `put_anon_vma`, `vma_address`. What differs: who comes from a page
//! always takes a reference, where Linux tries for the lock first.

use super::Version;
use super::list::{List, Node};
use super::pinned::Pinned;
use super::vma::Vma;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::{self, NonNull, from_ref, null_mut};
use machine::{Atomic, AtomicInt, CpuRange, Machine, Ordering, SharedCell};
use sync::watch::Watched;
use sync::{PerCpu, RawLock, lock_class};

lock_class!(
    /// The lock of a root anon_vma: all lists of a family of processes.
    pub AnonVmaRoot = "anon_vma root", rank 32
);

type RootLock<M, V> = Watched<M, <V as Version>::Lock<M>, AnonVmaRoot>;
type Held<M, V> = <RootLock<M, V> as RawLock<M>>::Held;

/// A list of the VMAs in which some pages may be mapped. 64 bytes with a mutex, as in Linux.
#[repr(C)]
pub(super) struct AnonVma<M: Machine, V: Version> {
    /// Whose lock guards `list`; written before anybody knows this one.
    root: M::AtomicPtr,
    lock: RootLock<M, V>,
    /// Users; 0 while the memory is unused.
    references: M::AtomicU32,
    list: List<M>,
}

/// A VMA's place on an anon_vma's list. A line.
#[repr(C, align(64))]
pub(super) struct Avc<M: Machine> {
    node: Node<M>,
    /// Written before it is listed.
    vma: M::AtomicPtr,
    anon_vma: M::AtomicPtr,
}

/// A counted reference's target.
pub(super) type AnonVmaRef<M, V> = NonNull<AnonVma<M, V>>;

impl<M: Machine, V: Version> AnonVma<M, V> {
    fn root(&self) -> &Self {
        let root = self.root.load(Ordering::Relaxed).cast::<Self>();
        // SAFETY: written when this was made; an anon_vma keeps its root.
        unsafe { &*root }
    }

    /// Locks this one, which is a root.
    #[track_caller]
    fn lock_as_root(&self) -> Root<'_, M, V> {
        let held = Some(self.lock.lock());
        Root { root: self, held }
    }

    /// Adds a reference unless there is none any more.
    fn try_retain(&self) -> bool {
        let mut now = self.references.load(Ordering::Relaxed);
        while now != 0 {
            // Acquire: pairs with the release in `Stock::take`.
            match self.references.compare_exchange_weak(
                now,
                now + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }
}

/// Unused anon_vmas: as many for each CPU as were freed on it, as a slab cache has them.
pub(super) struct Stock<M: Machine, V: Version>(PerCpu<M::Cell<Unused<M, V>>, M>);

struct Unused<M: Machine, V: Version>(Vec<AnonVmaRef<M, V>>);

// SAFETY: nobody else has what is unused.
unsafe impl<M: Machine, V: Version> Send for Unused<M, V> {}

impl<M: Machine, V: Version> Stock<M, V> {
    pub(super) fn new(cpus: CpuRange) -> Self {
        Stock(PerCpu::new(cpus, |_| M::Cell::new(Unused(Vec::new()))))
    }

    /// An anon_vma with one reference, which is its own root if it gets no other.
    fn take(&self, root: Option<&AnonVma<M, V>>) -> AnonVmaRef<M, V> {
        let pin = M::pin();
        // SAFETY: the pin's CPU is ours.
        let unused = unsafe { (*self.0.get(&pin).write()).0.pop() };
        drop(pin);
        let place = unused.unwrap_or_else(|| {
            let made = Box::leak(Box::new(AnonVma {
                root: M::AtomicPtr::new(null_mut()),
                lock: RootLock::<M, V>::new(),
                references: M::AtomicU32::new(0),
                list: List::new(),
            }));
            M::label_value(made, "anon_vma");
            NonNull::from(made)
        });
        // SAFETY: an anon_vma's memory stays one.
        let anon_vma = unsafe { place.as_ref() };
        let root = root.map_or(place.as_ptr(), |root| from_ref(root).cast_mut());
        anon_vma.root.store(root.cast(), Ordering::Relaxed);
        // Release: pairs with the acquire in `try_retain`, for the root.
        anon_vma.references.store(1, Ordering::Release);
        place
    }

    /// Drops a reference; with the last the anon_vma goes, and its reference to its root.
    fn put(&self, place: AnonVmaRef<M, V>) {
        // SAFETY: an anon_vma's memory stays one.
        let anon_vma = unsafe { place.as_ref() };
        // AcqRel: who frees it sees what others did before they dropped theirs.
        if anon_vma.references.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let root = anon_vma.root();
        if !ptr::eq(root, anon_vma) {
            self.put(NonNull::from(root));
        }
        // Someone may have come from a page and be about to look at the list.
        if V::FREE_WAITS && root.lock.is_locked() {
            drop(root.lock_as_root());
        }
        let pin = M::pin();
        // SAFETY: the pin's CPU is ours.
        unsafe { (*self.0.get(&pin).write()).0.push(place) };
    }
}

impl<M: Machine, V: Version> Drop for Stock<M, V> {
    fn drop(&mut self) {
        for unused in self.0.iter() {
            // SAFETY: the VM goes: no space is left, and no page names any.
            for place in unsafe { (*unused.write()).0.drain(..) } {
                // SAFETY: from a box, and nobody else's.
                drop(unsafe { Box::from_raw(place.as_ptr()) });
            }
        }
    }
}

/// The root's lock along a chain: taken for each node, or kept while the root is the same.
struct Along<'a, M: Machine, V: Version> {
    batches: bool,
    locked: Option<Root<'a, M, V>>,
}

impl<'a, M: Machine, V: Version> Along<'a, M, V> {
    fn new(batches: bool) -> Self {
        let locked = None;
        Along { batches, locked }
    }

    /// Does `change` under the lock of the root of `anon_vma`.
    #[track_caller]
    fn with<R>(&mut self, anon_vma: &'a AnonVma<M, V>, change: impl FnOnce() -> R) -> R {
        let root = anon_vma.root();
        let locked = self.locked.as_ref();
        if !locked.is_some_and(|locked| ptr::eq(locked.root, root)) {
            self.locked = None;
            self.locked = Some(root.lock_as_root());
        }
        let result = change();
        if !self.batches {
            self.locked = None;
        }
        result
    }
}

impl<M: Machine> Avc<M> {
    fn new<V: Version>(vma: &Vma<M, V>, anon_vma: AnonVmaRef<M, V>) -> Pinned<Self> {
        let avc = Pinned::new(Avc {
            node: Node::new(),
            vma: M::AtomicPtr::new(from_ref(vma).cast_mut().cast()),
            anon_vma: M::AtomicPtr::new(anon_vma.as_ptr().cast()),
        });
        M::label_value(&*avc, "anon_vma_chain");
        avc
    }

    fn anon_vma<V: Version>(&self) -> AnonVmaRef<M, V> {
        let anon_vma = self.anon_vma.load(Ordering::Relaxed).cast();
        // SAFETY: written when this was made.
        unsafe { NonNull::new_unchecked(anon_vma) }
    }
}

/// What the operations below have in common.
pub(super) struct AnonVmas<M: Machine, V: Version> {
    pub(super) stock: Stock<M, V>,
    /// Whether the root's lock is kept along a chain.
    pub(super) batches: bool,
}

impl<M: Machine, V: Version> AnonVmas<M, V> {
    /// The lock of the family of `vma`, if it has touched anonymous memory.
    #[track_caller]
    pub(super) fn lock<'a>(&self, vma: &'a Vma<M, V>) -> Option<Root<'a, M, V>> {
        // SAFETY: a VMA keeps its anon_vma.
        let root = unsafe { vma.anon_vma()?.as_ref() }.root();
        Some(root.lock_as_root())
    }

    /// Gives `vma`, which has none, the anon_vma `shared` or a new one, unless another fault is
    /// faster. `table_lock` is the space's.
    pub(super) fn prepare<L: RawLock<M>>(
        &self,
        vma: &Vma<M, V>,
        shared: Option<AnonVmaRef<M, V>>,
        table_lock: &L,
    ) {
        let place = shared.unwrap_or_else(|| self.stock.take(None));
        let avc = Avc::new(vma, place);
        // SAFETY: a neighbour's, which the map's lock keeps, or new.
        let anon_vma = unsafe { place.as_ref() };
        let root = anon_vma.root().lock_as_root();
        let table = table_lock.lock();
        let is_first = vma.anon_vma().is_none();
        if is_first {
            // SAFETY: the root is locked, and nobody else changes the chain of a VMA without an
            // anon_vma while the page table lock is held.
            unsafe {
                anon_vma.list.push(&avc.node);
                (*vma.chain.write()).push(avc);
            }
            vma.set_anon_vma(place);
        }
        // SAFETY: locked above.
        unsafe { table_lock.unlock(table) };
        drop(root);
        if !is_first && shared.is_none() {
            self.stock.put(place);
        }
    }

    /// Puts `to`, which is on none, on all lists that `from` is on. The map is locked for writing.
    pub(super) fn clone_chain(&self, to: &Vma<M, V>, from: &Vma<M, V>) {
        let mut along = Along::new(self.batches);
        // SAFETY: the map is locked.
        let chain = unsafe { &*from.chain.read() };
        for avc in chain {
            let place = avc.anon_vma::<V>();
            // SAFETY: who is listed keeps the anon_vma.
            let anon_vma = unsafe { place.as_ref() };
            let new = Avc::new(to, place);
            // SAFETY: the root is locked; nobody else knows `to`, or the map is locked.
            along.with(anon_vma, || unsafe { anon_vma.list.push(&new.node) });
            // SAFETY: the map is locked.
            unsafe { (*to.chain.write()).push(new) };
        }
    }

    /// Makes `child`, a VMA of a forked space, one of the family of `parent`.
    pub(super) fn fork(&self, child: &Vma<M, V>, parent: &Vma<M, V>) {
        let Some(parents) = parent.anon_vma() else {
            return;
        };
        self.clone_chain(child, parent);
        // SAFETY: a VMA keeps its anon_vma.
        let root = unsafe { parents.as_ref() }.root();
        let place = self.stock.take(Some(root));
        // Relaxed: the parent's VMA has one.
        root.references.fetch_add(1, Ordering::Relaxed);
        child.set_anon_vma(place);
        // SAFETY: made above.
        let anon_vma = unsafe { place.as_ref() };
        let avc = Avc::new(child, place);
        let mut along = Along::new(false);
        // SAFETY: the root is locked; the child is nobody else's yet.
        unsafe {
            along.with(anon_vma, || anon_vma.list.push(&avc.node));
            (*child.chain.write()).push(avc);
        }
    }

    /// Takes `vma` off all lists. The map is locked for writing.
    pub(super) fn unlink(&self, vma: &Vma<M, V>) {
        // SAFETY: the map is locked.
        let chain = unsafe { core::mem::take(&mut *vma.chain.write()) };
        let mut empty = Vec::new();
        let mut along = Along::new(self.batches);
        for avc in chain.iter().rev() {
            let place = avc.anon_vma::<V>();
            // SAFETY: who is listed keeps the anon_vma.
            let anon_vma = unsafe { place.as_ref() };
            // SAFETY: the root is locked.
            let is_empty = along.with(anon_vma, || unsafe {
                anon_vma.list.remove(&avc.node);
                anon_vma.list.is_empty()
            });
            match is_empty {
                true if self.batches => empty.push(place),
                true => self.stock.put(place),
                false => {}
            }
        }
        drop(along);
        empty.into_iter().for_each(|place| self.stock.put(place));
        vma.forget_anon_vma();
    }

    /// Goes through the list of the anon_vma at `place`, which a page names, under its root's lock.
    /// How many VMAs may map the page with this index, and how many there are.
    pub(super) fn walk(&self, place: AnonVmaRef<M, V>, index: u64) -> (usize, usize) {
        // SAFETY: an anon_vma's memory stays one.
        let anon_vma = unsafe { place.as_ref() };
        if !anon_vma.try_retain() {
            return (0, 0);
        }
        let root = anon_vma.root().lock_as_root();
        let (mut found, mut seen) = (0, 0);
        // SAFETY: the root is locked: who is listed is there.
        unsafe {
            for node in anon_vma.list.iter() {
                // The node is the first field of what is listed.
                let avc = &*node.cast::<Avc<M>>();
                let vma = &*avc.vma.load(Ordering::Relaxed).cast::<Vma<M, V>>();
                found += usize::from(vma.address_of(index).is_some());
                seen += 1;
            }
        }
        drop(root);
        self.stock.put(place);
        (found, seen)
    }
}

/// A root, locked.
pub(super) struct Root<'a, M: Machine, V: Version> {
    root: &'a AnonVma<M, V>,
    held: Option<Held<M, V>>,
}

impl<M: Machine, V: Version> Drop for Root<'_, M, V> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // SAFETY: from this lock, and given back once.
            unsafe { self.root.lock.unlock(held) };
        }
    }
}
