//! Objects: the pages of regions, and the shadow chains of those that were forked (FreeBSD 14,
//! sys/vm/vm_object.c and the part of vm_fault.c that walks them).
//!
//! An anonymous region has an *object* with its pages. After a fork both regions refer to the same
//! object; the first write of either gives its region a *shadow*, an empty object in front of it,
//! and a page that is not in the shadow is looked for in the objects behind. When only one shadow
//! is left of an object, it gets the object's pages (`vm_object_collapse`).
//!
//! # Protocol
//! The object's lock guards all but the counts. `refs` is never raised from 0; from other values it
//! may be raised without the lock, as by FreeBSD's `refcount_acquire`. A task locks a shadow before
//! the object behind it; in the other order it only tries to. An [`Arc`] keeps the memory of an
//! object as long as any task refers to it; FreeBSD's counts determine when the object ends.

mod collapse;
mod fault;

pub(super) use fault::Faulting;

use super::resident::Resident;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use machine::{Atomic, AtomicInt, Machine, Ordering, SharedCell};
use sync::lock_class;
use sync::rwlock::{FreebsdRw, RawRw};
use sync::watch::Watched;

lock_class!(
    /// The lock of a `vm_object`. Shadows come before the objects behind them.
    pub VmObjectLock = "vm object", rank 17, nesting Allowed
);

type ObjectRw<M> = Watched<M, FreebsdRw<M>, VmObjectLock>;

/// A value on a cache line of its own.
#[repr(align(64))]
struct Line<T>(T);

/// An object with the pages of anonymous memory: three cache lines, if locks are not watched.
pub struct AnonObject<M: Machine> {
    lock: Line<ObjectRw<M>>,
    /// `rtree`, `memq`, `size`.
    pages: Line<M::Cell<Pages>>,
    links: Links<M>,
}

/// What links an object to others.
#[repr(align(64))]
struct Links<M: Machine> {
    counts: Counts<M>,
    chain: M::Cell<Chain<M>>,
}

#[derive(Default)]
struct Pages {
    resident: Resident,
    size: u64,
}

/// Counts that change by atomic operations.
pub(super) struct Counts<M: Machine> {
    /// `ref_count`: regions, faults and shadows.
    refs: M::AtomicU32,
    /// `paging_in_progress` and `busy`.
    paging: M::AtomicU32,
}

struct Chain<M: Machine> {
    backing: Backing<M>,
    /// The page of `backing` that lies behind the first of this object.
    offset: u64,
    shadows: Vec<Weak<AnonObject<M>>>,
    /// `OBJ_ONEMAPPING`.
    is_mapped_once: bool,
}

/// What a region maps, or what lies behind an object.
pub(super) enum Backing<M: Machine> {
    None,
    Anon(Arc<AnonObject<M>>),
    File(FileObject<M>),
}

/// The object of a file, or of shared memory: its lock, and the counts.
pub struct FileObject<M: Machine>(Arc<Shared<M>>);

struct Shared<M: Machine> {
    lock: Line<ObjectRw<M>>,
    counts: Line<Counts<M>>,
}

impl<M: Machine> Clone for FileObject<M> {
    fn clone(&self) -> Self {
        FileObject(self.0.clone())
    }
}

impl<M: Machine> Clone for Backing<M> {
    fn clone(&self) -> Self {
        match self {
            Backing::None => Backing::None,
            Backing::Anon(object) => Backing::Anon(object.clone()),
            Backing::File(object) => Backing::File(object.clone()),
        }
    }
}

impl<M: Machine> Backing<M> {
    /// Returns true if both are the same object, or both are `None`.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Backing::None, Backing::None) => true,
            (Backing::Anon(one), Backing::Anon(other)) => Arc::ptr_eq(one, other),
            (Backing::File(one), Backing::File(other)) => Arc::ptr_eq(&one.0, &other.0),
            _ => false,
        }
    }

    /// The length of the chain of objects. No task changes it meanwhile.
    pub(super) fn depth(&self) -> usize {
        match self {
            Backing::None => 0,
            // SAFETY: the caller ensures that no task writes.
            Backing::Anon(object) => 1 + unsafe { (*object.links.chain.read()).backing.depth() },
            Backing::File(_) => 1,
        }
    }

    /// Counts another region that refers to the object.
    pub(super) fn refer(&self) {
        match self {
            Backing::None => {}
            Backing::Anon(object) => object.links.counts.refer(),
            Backing::File(object) => object.counts().refer(),
        }
    }

    /// Drops the reference of a region.
    #[track_caller]
    pub(super) fn leave(self) {
        match self {
            Backing::None => {}
            Backing::Anon(object) => AnonObject::deallocate(object),
            Backing::File(object) => {
                object.counts().release();
            }
        }
    }
}

/// Counts guard no other memory, so they are relaxed. The last reference is dropped under the lock.
impl<M: Machine> Counts<M> {
    fn new() -> Self {
        Counts {
            refs: M::AtomicU32::new(1),
            paging: M::AtomicU32::new(0),
        }
    }

    fn refer(&self) {
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) -> u32 {
        self.refs.fetch_sub(1, Ordering::Relaxed) - 1
    }

    /// Drops a reference if there are more than `least`. Returns true if it did.
    fn release_if_above(&self, least: u32) -> bool {
        let less = |refs| (refs > least).then(|| refs - 1);
        self.refs
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }

    fn begin(&self) {
        self.paging.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.paging.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<M: Machine> FileObject<M> {
    pub(super) fn new() -> Self {
        let object = Arc::new(Shared {
            lock: Line(ObjectRw::<M>::new()),
            counts: Line(Counts::new()),
        });
        M::label_value(&*object, "vm_object");
        FileObject(object)
    }

    fn counts(&self) -> &Counts<M> {
        &self.0.counts.0
    }
}

impl<M: Machine> AnonObject<M> {
    /// An object of `size` pages, none resident, in front of `backing`, whose reference it takes.
    #[track_caller]
    pub(super) fn new(size: u64, backing: Backing<M>, offset: u64) -> Arc<Self> {
        let object = Arc::new(AnonObject {
            lock: Line(ObjectRw::<M>::new()),
            pages: Line(SharedCell::new(Pages {
                resident: Resident::default(),
                size,
            })),
            links: Links {
                counts: Counts::new(),
                chain: SharedCell::new(Chain {
                    backing: Backing::None,
                    offset,
                    shadows: Vec::new(),
                    is_mapped_once: true,
                }),
            },
        });
        M::label_value(&*object, "vm_object");
        if let Backing::Anon(behind) = &backing {
            behind.lock.0.write();
            let chain = behind.chain();
            chain.shadows.push(Arc::downgrade(&object));
            chain.is_mapped_once = false;
            behind.unlock();
        }
        // No other task knows the object.
        object.chain().backing = backing;
        object
    }

    /// Returns true if there is only one reference, so no shadow is needed.
    pub(super) fn is_only(&self) -> bool {
        self.links.counts.refs.load(Ordering::Relaxed) == 1
    }

    /// Counts a copy of the region that refers to it (`vm_map_copy_anon_object`).
    #[track_caller]
    pub(super) fn copy(self: &Arc<Self>) {
        self.lock.0.write();
        self.collapse();
        self.links.counts.refer();
        self.chain().is_mapped_once = false;
        self.unlock();
    }

    /// Makes the object larger, if only the region that ends at its page `end` refers to it
    /// (`vm_object_coalesce`). Returns true if it did.
    #[track_caller]
    pub(super) fn extend(self: &Arc<Self>, end: u64, pages: u64) -> bool {
        self.lock.0.write();
        self.collapse();
        let chain = self.chain();
        let is_alone =
            self.is_only() && matches!(chain.backing, Backing::None) && chain.shadows.is_empty();
        if is_alone {
            let own = self.pages();
            own.resident.free_range::<M>(end..own.size);
            own.size = end + pages;
        }
        self.unlock();
        is_alone
    }

    /// Frees the pages of `range`, to which a deleted region referred, while others still refer to
    /// the object (`vm_map_entry_delete`).
    #[track_caller]
    pub(super) fn remove(self: &Arc<Self>, range: Range<u64>) {
        self.lock.0.write();
        if !self.is_only() && self.chain().is_mapped_once {
            self.collapse();
            self.pages().resident.free_range::<M>(range);
        }
        self.unlock();
    }

    /// Returns true if the page is resident. The object is locked.
    fn has(&self, index: u64) -> bool {
        // SAFETY: the object is locked.
        unsafe { (*self.pages.0.read()).resident.has(index) }
    }

    /// The pages of an object that is locked for writing.
    #[allow(clippy::mut_from_ref)]
    fn pages(&self) -> &mut Pages {
        // SAFETY: the object is locked for writing, and no caller keeps what another call returned.
        unsafe { &mut *self.pages.0.write() }
    }

    /// The chain of an object that is locked for writing, or that no other task knows.
    #[allow(clippy::mut_from_ref)]
    fn chain(&self) -> &mut Chain<M> {
        // SAFETY: the object is locked for writing, or no other task knows it.
        unsafe { &mut *self.links.chain.write() }
    }

    fn unlock(&self) {
        // SAFETY: its callers have locked it for writing.
        unsafe { self.lock.0.write_unlock() };
    }
}
