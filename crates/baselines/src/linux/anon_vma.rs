//! anon_vmas and their chains: Linux's way to the mappings of an anonymous page.
//!
//! ```text
//!             anon_vma A (parent's)          anon_vma B (child's, root: A)
//!                 │ list                         │ list
//!   VMA ── avc ───┤                              │
//!   child's VMA ── avc ─┘      ── avc ───────────┘
//! ```
//! A page names the anon_vma of the VMA in which it was first mapped. Each VMA that may map the
//! page, after a fork, a split or a move of a border, has a chain node (*avc*) on that anon_vma's
//! list. A fork gives each of the child's VMAs a node on every list that holds its parent's VMA,
//! and an anon_vma of its own. One lock guards all lists of a family, that of the *root*: the
//! anon_vma of the ancestor that first touched the memory after its exec.
//!
//! # Protocol
//! - A list, and the content of its nodes, change under the root's lock.
//! - A VMA's chain changes under its space's map lock for writing; or, while it has none, at the
//!   first fault under the root's lock and the space's page table lock.
//! - Each child of a root, and each user of an anon_vma, has a reference; the memory of an anon_vma
//!   stays an anon_vma for as long as the VM lives (`SLAB_DESTROY_BY_RCU` in Linux), so a page may
//!   name one that is no longer used. A task that follows a page's name takes a reference only if
//!   the count is not 0.
//!
//! Linux 2.6.39 and 3.0, `mm/rmap.c`: `anon_vma_prepare`, `anon_vma_clone`, `anon_vma_fork`,
//! `unlink_anon_vmas`, `put_anon_vma`, `vma_address`. The difference: a task that follows a page's
//! name always takes a reference, where Linux tries to lock first.

use super::Version;
use super::list::{List, Node, Pinned};
use super::vma::Vma;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::{self, NonNull, from_ref, null_mut};
use machine::{Atomic, AtomicInt, CpuRange, Machine, Ordering, SharedCell};
use sync::watch::Watched;
use sync::{PerCpu, RawGuard, RawLock, lock_class};
use vm::Error;

lock_class!(
    /// The lock of a root anon_vma: all lists of a family of processes.
    pub AnonVmaRoot = "anon_vma root", rank 32
);

type RootLock<M, V> = Watched<M, <V as Version>::Lock<M>, AnonVmaRoot>;

/// A list of the VMAs in which some pages may be mapped. 64 bytes with a mutex, as in Linux.
#[repr(C)]
pub(super) struct AnonVma<M: Machine, V: Version> {
    /// The anon_vma whose lock guards `list`; written before this one is shared.
    root: M::AtomicPtr,
    lock: RootLock<M, V>,
    /// Users; 0 while the memory is unused.
    references: M::AtomicU32,
    list: List<M>,
}

/// A VMA's node on an anon_vma's list. One cache line.
#[repr(C, align(64))]
pub(super) struct Avc<M: Machine> {
    node: Node<M>,
    /// Written before the node is listed.
    vma: M::AtomicPtr,
    anon_vma: M::AtomicPtr,
}

/// A counted reference's target.
pub(super) type AnonVmaRef<M, V> = NonNull<AnonVma<M, V>>;

impl<M: Machine, V: Version> AnonVma<M, V> {
    fn root(&self) -> &Self {
        let root = self.root.load(Ordering::Relaxed).cast::<Self>();
        // SAFETY: the root was written when this was made, and an anon_vma keeps its root.
        unsafe { &*root }
    }

    /// Locks this anon_vma, which is a root.
    #[track_caller]
    fn lock_as_root(&self) -> Root<'_, M, V> {
        Root {
            root: self,
            _held: RawGuard::new(&self.lock),
        }
    }

    /// Adds a reference unless none is left.
    fn try_retain(&self) -> bool {
        // Acquire: pairs with the release in `Stock::take`.
        let retained = |now: u32| (now != 0).then_some(now + 1);
        self.references
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, retained)
            .is_ok()
    }
}

/// Unused anon_vmas: for each CPU those freed there, as in a slab cache.
pub(super) struct Stock<M: Machine, V: Version>(PerCpu<M::Cell<Unused<M, V>>, M>);

struct Unused<M: Machine, V: Version>(Vec<AnonVmaRef<M, V>>);

// SAFETY: only the list refers to an unused anon_vma.
unsafe impl<M: Machine, V: Version> Send for Unused<M, V> {}

impl<M: Machine, V: Version> Stock<M, V> {
    pub(super) fn new(cpus: CpuRange) -> Result<Self, Error> {
        let unused = PerCpu::try_new(cpus, |_| M::Cell::new(Unused(Vec::new())))?;
        Ok(Stock(unused))
    }

    /// An anon_vma with one reference, which is its own root if none is given.
    fn take(&self, root: Option<&AnonVma<M, V>>) -> AnonVmaRef<M, V> {
        let pin = M::pin();
        // SAFETY: pinned, so no other task accesses this CPU's list.
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
        // SAFETY: the memory of an anon_vma always remains an anon_vma.
        let anon_vma = unsafe { place.as_ref() };
        let root = root.map_or(place.as_ptr(), |root| from_ref(root).cast_mut());
        anon_vma.root.store(root.cast(), Ordering::Relaxed);
        // Release: pairs with the acquire in `try_retain`, for the root.
        anon_vma.references.store(1, Ordering::Release);
        place
    }

    /// Drops a reference; with the last one, frees the anon_vma and drops its reference to its
    /// root.
    fn put(&self, place: AnonVmaRef<M, V>) {
        // SAFETY: the memory of an anon_vma always remains an anon_vma.
        let anon_vma = unsafe { place.as_ref() };
        // AcqRel: the task that frees it sees what others did before they dropped theirs.
        if anon_vma.references.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let root = anon_vma.root();
        if !ptr::eq(root, anon_vma) {
            self.put(NonNull::from(root));
        }
        // A task that followed a page's name may be about to read the list.
        if V::FREE_WAITS && root.lock.is_locked() {
            drop(root.lock_as_root());
        }
        let pin = M::pin();
        // SAFETY: pinned, so no other task accesses this CPU's list.
        unsafe { (*self.0.get(&pin).write()).0.push(place) };
    }
}

impl<M: Machine, V: Version> Drop for Stock<M, V> {
    fn drop(&mut self) {
        for unused in self.0.iter() {
            // SAFETY: the VM is dropped: no space is left, and no page names an anon_vma.
            for place in unsafe { (*unused.write()).0.drain(..) } {
                // SAFETY: it comes from a box, and only the stock refers to it.
                drop(unsafe { Box::from_raw(place.as_ptr()) });
            }
        }
    }
}

/// The root's lock along a chain: acquired for each node, or kept while the root is the same.
struct Along<'a, M: Machine, V: Version> {
    batches: bool,
    locked: Option<Root<'a, M, V>>,
}

impl<'a, M: Machine, V: Version> Along<'a, M, V> {
    fn new(batches: bool) -> Self {
        let locked = None;
        Along { batches, locked }
    }

    /// Runs `change` under the lock of the root of `anon_vma`.
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
        // SAFETY: the pointer was written when this was made.
        unsafe { NonNull::new_unchecked(anon_vma) }
    }
}

/// The shared state of the operations on anon_vmas.
pub(super) struct AnonVmas<M: Machine, V: Version> {
    pub(super) stock: Stock<M, V>,
    /// True if the root's lock is kept along a chain.
    pub(super) batches: bool,
}

impl<M: Machine, V: Version> AnonVmas<M, V> {
    /// Locks the family of `vma`, if it has touched anonymous memory.
    #[track_caller]
    pub(super) fn lock<'a>(&self, vma: &'a Vma<M, V>) -> Option<Root<'a, M, V>> {
        // SAFETY: a VMA keeps its anon_vma.
        let root = unsafe { vma.anon_vma()?.as_ref() }.root();
        Some(root.lock_as_root())
    }

    /// Gives `vma`, which has no anon_vma, `shared` or a new one, unless another fault does so
    /// first. `table_lock` is the space's.
    pub(super) fn prepare<L: RawLock<M>>(
        &self,
        vma: &Vma<M, V>,
        shared: Option<AnonVmaRef<M, V>>,
        table_lock: &L,
    ) {
        let place = shared.unwrap_or_else(|| self.stock.take(None));
        let avc = Avc::new(vma, place);
        // SAFETY: it is a neighbour's, which the map's lock keeps, or new.
        let anon_vma = unsafe { place.as_ref() };
        let root = anon_vma.root().lock_as_root();
        let table = table_lock.lock();
        let is_first = vma.anon_vma().is_none();
        if is_first {
            // SAFETY: the root is locked, and under the page table lock no other task changes the
            // chain of a VMA without an anon_vma.
            unsafe {
                anon_vma.list.push(&avc.node);
                (*vma.chain.write()).push(avc);
            }
            vma.set_anon_vma(place);
        }
        // SAFETY: the lock was acquired above, by this call.
        unsafe { table_lock.unlock(table) };
        drop(root);
        if !is_first && shared.is_none() {
            self.stock.put(place);
        }
    }

    /// Puts `to`, which is on no list, on all lists of `from`. The map is locked for writing.
    pub(super) fn clone_chain(&self, to: &Vma<M, V>, from: &Vma<M, V>) {
        let mut along = Along::new(self.batches);
        // SAFETY: the map is locked, so the chain does not change.
        let chain = unsafe { &*from.chain.read() };
        for avc in chain {
            let place = avc.anon_vma::<V>();
            // SAFETY: a listed VMA keeps the anon_vma.
            let anon_vma = unsafe { place.as_ref() };
            let new = Avc::new(to, place);
            // SAFETY: the root is locked; only this task knows `to`, or the map is locked.
            along.with(anon_vma, || unsafe { anon_vma.list.push(&new.node) });
            // SAFETY: the map is locked for writing, so only this task accesses the chain.
            unsafe { (*to.chain.write()).push(new) };
        }
    }

    /// Makes `child`, a VMA of a forked space, a member of the family of `parent`.
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
        // SAFETY: this call has made it.
        let anon_vma = unsafe { place.as_ref() };
        let avc = Avc::new(child, place);
        let mut along = Along::new(false);
        // SAFETY: the root is locked, and only this task knows the child.
        unsafe {
            along.with(anon_vma, || anon_vma.list.push(&avc.node));
            (*child.chain.write()).push(avc);
        }
    }

    /// Removes `vma` from all lists. The map is locked for writing.
    pub(super) fn unlink(&self, vma: &Vma<M, V>) {
        // SAFETY: the map is locked for writing, so only this task accesses the chain.
        let chain = unsafe { core::mem::take(&mut *vma.chain.write()) };
        let mut empty = Vec::new();
        let mut along = Along::new(self.batches);
        for avc in chain.iter().rev() {
            let place = avc.anon_vma::<V>();
            // SAFETY: a listed VMA keeps the anon_vma.
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

    /// Walks the list of the anon_vma at `place`, which a page names, under its root's lock.
    /// Returns how many VMAs may map the page with this index, and how many are on the list.
    pub(super) fn walk(&self, place: AnonVmaRef<M, V>, index: u64) -> (usize, usize) {
        // SAFETY: the memory of an anon_vma always remains an anon_vma.
        let anon_vma = unsafe { place.as_ref() };
        if !anon_vma.try_retain() {
            return (0, 0);
        }
        let root = anon_vma.root().lock_as_root();
        let (mut found, mut seen) = (0, 0);
        // SAFETY: the root is locked, so listed VMAs exist.
        unsafe {
            for node in anon_vma.list.iter() {
                // The node is the first field of the listed structure.
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

/// A locked root.
pub(super) struct Root<'a, M: Machine, V: Version> {
    root: &'a AnonVma<M, V>,
    _held: RawGuard<'a, M, RootLock<M, V>>,
}
