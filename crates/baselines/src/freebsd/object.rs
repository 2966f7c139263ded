//! Objects: the pages of regions, and the shadow chains of those that were forked (FreeBSD 14, sys/vm/vm_object.c and the part of
//! vm_fault.c that walks them).
//!
//! An anonymous region has an *object* with its pages. After a fork both regions refer to the same object; the first write of
//! either gives its region a *shadow*, an empty object in front of it, and a page that is not in the shadow is looked for in the
//! objects behind. When only one shadow is left of an object, it gets the object's pages (`vm_object_collapse`).
//!
//! # A fault
//! It locks the region's object for reading, and if the page is there maps it under that lock (`vm_fault_soft_fast`). Otherwise
//! it locks the object for writing, counts a reference and itself (`paging_in_progress`), takes a page, and goes down the
//! chain from lock to lock, each for writing (`vm_fault_next`). The end of the fault gives the reference back: since of an
//! anonymous object the last but one may have to collapse a chain, that locks for writing again (`vm_object_deallocate`).
//!
//! # Protocol
//! All but the counts is under the object's lock; `refs` is raised from 0 never, and from other values also without the lock, as
//! FreeBSD's `refcount_acquire`. A task locks a shadow before the object behind it; in the other order it only tries.
//! An [`Arc`] keeps the memory of an object as long as anyone knows it, FreeBSD's counts say when it ends.

use super::resident::Resident;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;
use machine::{Atomic, AtomicInt, Machine, Ordering, SharedCell};
use sync::lock_class;
use sync::rwlock::{FreebsdRw, RawRw};
use sync::watch::Watched;

lock_class!(
    /// A `vm_object`. Shadows before the objects behind them.
    pub VmObjectLock = "vm object", rank 17, nesting Allowed
);

type ObjectRw<M> = Watched<M, FreebsdRw<M>, VmObjectLock>;

/// A value on a line of its own.
#[repr(align(64))]
struct Line<T>(T);

/// An object with the pages of anonymous memory: three lines, if locks are not watched.
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

/// What a region maps, or lies behind an object.
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

/// A fault's hold on objects.
pub(super) enum Faulting<'a, M: Machine> {
    /// The page is in the region's own object, which is locked for reading.
    Here(&'a ObjectRw<M>, &'a Counts<M>),
    /// It was looked for behind.
    Searched(Searched<'a, M>),
}

pub(super) struct Searched<'a, M: Machine> {
    first: &'a AnonObject<M>,
    index: u64,
    behind: Option<Behind<M>>,
    writes: bool,
}

/// Where a page was found.
enum Behind<M: Machine> {
    Anon(Arc<AnonObject<M>>, u64),
    File(FileObject<M>),
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
    /// Whether both are the same object, or both are none.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Backing::None, Backing::None) => true,
            (Backing::Anon(one), Backing::Anon(other)) => Arc::ptr_eq(one, other),
            (Backing::File(one), Backing::File(other)) => Arc::ptr_eq(&one.0, &other.0),
            _ => false,
        }
    }

    /// How many objects these are, one behind the other. Nobody changes them.
    pub(super) fn depth(&self) -> usize {
        match self {
            Backing::None => 0,
            // SAFETY: the caller says that nobody writes.
            Backing::Anon(object) => 1 + unsafe { (*object.links.chain.read()).backing.depth() },
            Backing::File(_) => 1,
        }
    }

    /// Counts another region that refers to it.
    pub(super) fn refer(&self) {
        match self {
            Backing::None => {}
            Backing::Anon(object) => object.links.counts.refer(),
            Backing::File(object) => object.counts().refer(),
        }
    }

    /// A region refers to it no more.
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

/// Counts guard no other memory: relaxed, but that the last reference is given back under the lock.
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

    /// Gives a reference back if there are more than `least`.
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

    /// A fault of a region that maps it: its page is taken to be there.
    #[track_caller]
    pub(super) fn fault(&self) -> Faulting<'_, M> {
        let Shared { lock, counts } = &*self.0;
        lock.0.read();
        counts.0.begin();
        Faulting::Here(&lock.0, &counts.0)
    }
}

impl<M: Machine> AnonObject<M> {
    /// An object of `size` pages without any, in front of `backing`, whose reference it gets.
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

    /// Whether one region has all references: no shadow is needed.
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

    /// Makes the object larger, if the region that ends at its page `end` is all that refers to it (`vm_object_coalesce`).
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

    /// A region that referred to the pages of `range` goes, while others still refer to the object (`vm_map_entry_delete`).
    #[track_caller]
    pub(super) fn remove(self: &Arc<Self>, range: Range<u64>) {
        self.lock.0.write();
        if !self.is_only() && self.chain().is_mapped_once {
            self.collapse();
            self.pages().resident.free_range::<M>(range);
        }
        self.unlock();
    }

    /// A fault of a region that has this object, at its page `index`. With the map locked.
    #[track_caller]
    pub(super) fn fault(&self, index: u64, writes: bool) -> Faulting<'_, M> {
        let (lock, counts) = (&self.lock.0, &self.links.counts);
        lock.read();
        counts.begin();
        if self.has(index) {
            return Faulting::Here(lock, counts);
        }
        counts.end();
        // SAFETY: acquired for reading above, and released here if it is not to be had for writing.
        unsafe {
            if !lock.try_upgrade() {
                lock.read_unlock();
                lock.write();
            }
        }
        counts.refer();
        counts.begin();
        self.pages().resident.take::<M>(index);
        let behind = self.search(index);
        if let (true, Some(Behind::Anon(object, at))) = (writes, &behind) {
            self.try_move(index, object, *at);
        }
        Faulting::Searched(Searched {
            first: self,
            index,
            behind,
            writes,
        })
    }

    /// Looks for a page behind this object, which is locked for writing and is unlocked.
    #[track_caller]
    fn search(&self, index: u64) -> Option<Behind<M>> {
        let (mut here, mut at) = (None::<Arc<Self>>, index);
        loop {
            let this = here.as_deref().unwrap_or(self);
            let (backing, offset) = (this.chain().backing.clone(), this.chain().offset);
            match &backing {
                Backing::None => {}
                Backing::Anon(next) => {
                    next.lock.0.write();
                    next.links.counts.begin();
                }
                Backing::File(next) => {
                    next.0.lock.0.write();
                    next.counts().begin();
                }
            }
            if let Some(here) = &here {
                here.links.counts.end();
            }
            this.unlock();
            at += offset;
            match backing {
                Backing::None => return None,
                Backing::File(file) => {
                    // SAFETY: acquired above.
                    unsafe { file.0.lock.0.write_unlock() };
                    return Some(Behind::File(file));
                }
                Backing::Anon(next) if next.has(at) => {
                    next.unlock();
                    return Some(Behind::Anon(next, at));
                }
                Backing::Anon(next) => here = Some(next),
            }
        }
    }

    /// Gets the page itself, in place of a copy, if no other object can want it (`vm_fault_cow`).
    #[track_caller]
    fn try_move(&self, index: u64, behind: &Arc<Self>, at: u64) {
        if !behind.is_only() || !self.lock.0.try_write() {
            return;
        }
        let is_next =
            matches!(&self.chain().backing, Backing::Anon(next) if Arc::ptr_eq(next, behind));
        if is_next && behind.lock.0.try_write() {
            let own = &mut self.pages().resident;
            own.free::<M>(index);
            own.adopt(&mut behind.pages().resident, at, index);
            behind.unlock();
        }
        self.unlock();
    }

    /// A fault gives its reference back; the region's stays.
    #[track_caller]
    fn end_fault(&self) {
        let counts = &self.links.counts;
        if !counts.release_if_above(2) {
            self.lock.0.write();
            if counts.release() == 1 && self.chain().shadows.is_empty() {
                self.chain().is_mapped_once = true;
            }
            self.unlock();
        }
    }

    /// Gives a reference back; with the last the object ends, and gives back its own to the object behind.
    #[track_caller]
    fn deallocate(object: Arc<Self>) {
        let mut next = Some(object);
        while let Some(object) = next.take() {
            let counts = &object.links.counts;
            if counts.release_if_above(2) {
                return;
            }
            object.lock.0.write();
            let left = counts.release();
            let chain = object.chain();
            if left == 1 && chain.shadows.len() == 1 {
                next = object.collapse_shadow();
            } else if left > 0 {
                chain.is_mapped_once |= left == 1;
                object.unlock();
            } else {
                let backing = mem::replace(&mut chain.backing, Backing::None);
                if let Backing::Anon(behind) = &backing {
                    behind.lock.0.write();
                    behind.forget(&object);
                    behind.unlock();
                }
                let pages = object.pages();
                pages.resident.free_range::<M>(0..u64::MAX / 2);
                object.unlock();
                match backing {
                    Backing::Anon(behind) => next = Some(behind),
                    other => other.leave(),
                }
            }
        }
    }

    /// The object, which is locked and is unlocked, has one shadow left, and no other reference: the shadow takes it over.
    /// Returns the shadow with a reference (`vm_object_deallocate_anon`).
    #[track_caller]
    fn collapse_shadow(&self) -> Option<Arc<Self>> {
        let shadow = self.chain().shadows.first().and_then(Weak::upgrade);
        let Some(shadow) = shadow else {
            self.unlock();
            return None;
        };
        let counts = &shadow.links.counts;
        if shadow.lock.0.try_write() {
            self.unlock();
        } else {
            counts.begin();
            self.unlock();
            shadow.lock.0.write();
            counts.end();
        }
        let more = |refs| (refs > 0).then(|| refs + 1);
        let lives = counts
            .refs
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if lives.is_ok() {
            shadow.collapse();
        }
        shadow.unlock();
        lives.is_ok().then_some(shadow)
    }

    /// Takes over the objects behind that no other refers to, and passes over those of which it has all pages. Locked.
    #[track_caller]
    fn collapse(self: &Arc<Self>) {
        while let Backing::Anon(behind) = self.chain().backing.clone() {
            behind.lock.0.write();
            let (own, its) = (self.pages(), behind.pages());
            let offset = self.chain().offset;
            let is_ours = behind.is_only();
            let shows = |page: u64| {
                let at = page.checked_sub(offset).filter(|&at| at < own.size);
                at.is_some_and(|at| !own.resident.has(at))
            };
            if !is_ours && its.resident.iter().any(shows) {
                return behind.unlock();
            }
            behind.forget(self);
            let beyond = behind.chain().backing.clone();
            if let Backing::Anon(beyond) = &beyond {
                beyond.lock.0.write();
                beyond.chain().shadows.push(Arc::downgrade(self));
                if is_ours {
                    beyond.forget(&behind);
                }
                beyond.unlock();
            }
            if is_ours {
                own.resident
                    .take_over::<M>(&mut its.resident, offset, own.size);
                // Its reference to the object beyond is this one's now.
                behind.chain().backing = Backing::None;
            } else {
                beyond.refer();
            }
            behind.links.counts.release();
            self.chain().offset += behind.chain().offset;
            self.chain().backing = beyond;
            behind.unlock();
        }
    }

    /// `shadow` is no shadow of this object any more. Locked.
    fn forget(&self, shadow: &Arc<Self>) {
        let is_other = |other: &Weak<Self>| !core::ptr::eq(other.as_ptr(), Arc::as_ptr(shadow));
        self.chain().shadows.retain(is_other);
    }

    /// Whether the page is resident. Locked.
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
        // SAFETY: as above.
        unsafe { &mut *self.links.chain.write() }
    }

    fn unlock(&self) {
        // SAFETY: its callers have locked it for writing.
        unsafe { self.lock.0.write_unlock() };
    }
}

impl<M: Machine> Drop for Faulting<'_, M> {
    fn drop(&mut self) {
        match self {
            Faulting::Here(lock, counts) => {
                // SAFETY: acquired for reading when this was made.
                unsafe { lock.read_unlock() };
                counts.end();
            }
            Faulting::Searched(searched) => searched.end(),
        }
    }
}

impl<M: Machine> Searched<'_, M> {
    /// The end of a fault (`fault_deallocate`): a page that shows what is behind is not kept in front.
    fn end(&self) {
        let first = self.first;
        match &self.behind {
            None => {}
            Some(Behind::Anon(behind, _)) => behind.links.counts.end(),
            Some(Behind::File(file)) => file.counts().end(),
        }
        if self.behind.is_some() && !self.writes {
            first.lock.0.write();
            first.pages().resident.free::<M>(self.index);
            first.unlock();
        }
        first.links.counts.end();
        first.end_fault();
    }
}
