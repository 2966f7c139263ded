//! The lifetime of an object, and its attachments, both kept by CPU.
//!
//! # Protocol
//! Its handles ([`ObjectRef`]) and its attachments keep an object. Each CPU that attaches has a
//! *shard*: a tree of attachments under a lock ([`super::ranges`]), made when first needed. As long
//! as there is a handle, attachments are not counted. When the last handle goes, the object is
//! *closed*: from then on a counter says how many shards have attachments (plus one for the task
//! that closes), as Linux's `percpu_ref` switches to one counter when it is killed. Only a shard's
//! first attachment and its last write the counter.
//!
//! - Closing: set `closed`, fence, then lock each shard that exists, mark it closed and count it if
//!   it has attachments.
//! - Making a shard later: publish it, fence, and close it if the object is closed. Either the
//!   maker sees that, or the closer sees the shard. Until then the maker's source, an attachment
//!   that is counted or a handle, keeps the object.
//! - The task that takes the last attachment out of a closed shard decrements the counter; at 0 the
//!   object is freed.
//!
//! A shard that appears while a walk is under way is found, or its attachments were inserted after
//! the walk began: the walk fences first, and the maker of a shard fences after publishing it.
//!
//! The shards' locks spin, and are not touched after they are released: another task may free the
//! object then.

#[cfg(test)]
mod model;

use super::Object;
use super::attachment::{Attached, Attachment};
use super::ranges::{Position, Ranges};
use crate::error::Error;
use crate::heap::try_box;
use crate::lock::ShardLock;
use crate::system::System;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::{self, NonNull};
use machine::{Atomic, AtomicInt, Atomics, CpuRange, Cpus, Machine, Ordering, Pinned, VaRange};
use sync::Padded;

/// The counts and the attachments that keep an object.
pub(super) struct Life<S: System> {
    cpus: CpuRange,
    /// A [`Shard`] for each CPU, or null. Written once each.
    shards: Box<[<S::Machine as Atomics>::AtomicPtr]>,
    /// 1 when the last handle has gone.
    closed: <S::Machine as Atomics>::AtomicU32,
    counts: Padded<Counts<S::Machine>>,
    of: PhantomData<fn() -> S>,
}

struct Counts<M: Machine> {
    /// Handles.
    handles: M::AtomicUsize,
    /// Closed shards that have attachments, and one for the task that closes.
    shards: M::AtomicUsize,
}

/// The attachments made on one CPU.
#[repr(C)]
pub(super) struct Shard<S: System> {
    reach: Reach<S::Machine>,
    line: Line<ShardLock<S::Machine, List<S>>>,
}

/// Data on a cache line apart from what is before it.
#[repr(align(64))]
struct Line<T>(T);

/// The range of pages within which all attachments of the shard ever lay: a walk for other pages
/// does not take its lock. Written under the shard's lock, and only when it widens; read by any
/// task.
struct Reach<M: Machine> {
    start: M::AtomicU64,
    end: M::AtomicU64,
}

impl<M: Machine> Reach<M> {
    fn nowhere() -> Self {
        Reach {
            start: M::AtomicU64::new(u64::MAX),
            end: M::AtomicU64::new(0),
        }
    }

    /// Adds the pages that a new attachment maps.
    fn widen(&self, pages: Range<u64>) {
        debug_assert!(pages.start < pages.end, "an attachment maps a page");
        let (start, end) = self.get();
        if pages.start < start || end < pages.end {
            self.start.store(start.min(pages.start), Ordering::Relaxed);
            self.end.store(end.max(pages.end), Ordering::Relaxed);
            // Pairs with the fence in `Walk::begin`: a walk sees this, or mappings by the
            // attachment see the changes made before the walk. So do mappings by later ones, which
            // take the lock after this.
            M::fence(Ordering::SeqCst);
        }
    }

    fn meets(&self, pages: &Range<u64>) -> bool {
        let (start, end) = self.get();
        start < pages.end && pages.start < end
    }

    fn get(&self) -> (u64, u64) {
        // Relaxed: ordered by the fences of `widen` and of `Walk::begin`.
        let load = |bound: &M::AtomicU64| bound.load(Ordering::Relaxed);
        (load(&self.start), load(&self.end))
    }
}

impl<S: System> Shard<S> {
    fn new() -> Self {
        Shard {
            reach: Reach::nowhere(),
            line: Line(ShardLock::<S::Machine, _>::new(List::<S> {
                ranges: Ranges::EMPTY,
                closed: false,
            })),
        }
    }

    fn list(&self) -> &ShardLock<S::Machine, List<S>> {
        &self.line.0
    }
}

/// The attachments of a shard, under its lock.
pub(super) struct List<S: System> {
    ranges: Ranges<S>,
    closed: bool,
}

impl<S: System> Life<S> {
    /// The life of an object with one handle.
    pub(super) fn new(cpus: CpuRange) -> Result<Self, Error> {
        let mut shards = Vec::new();
        shards.try_reserve_exact(cpus.len())?;
        shards.extend(
            (0..cpus.len()).map(|_| <S::Machine as Atomics>::AtomicPtr::new(ptr::null_mut())),
        );
        Ok(Life {
            cpus,
            shards: shards.into_boxed_slice(),
            closed: <S::Machine as Atomics>::AtomicU32::new(0),
            counts: Padded(Counts {
                handles: <S::Machine as Atomics>::AtomicUsize::new(1),
                shards: <S::Machine as Atomics>::AtomicUsize::new(1),
            }),
            of: PhantomData,
        })
    }

    pub(super) fn label(&self) {
        S::Machine::label_value(&*self.shards, "Object.shards");
        S::Machine::label_value(&self.counts, "Object.counts");
    }

    /// The calling CPU's shard, and its index.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the machine.
    pub(super) fn own_shard(&self) -> Result<(&Shard<S>, usize), Error> {
        let index = self.cpus.index_of(S::Machine::pin().cpu());
        match self.shard(index) {
            Some(shard) => Ok((shard, index)),
            None => Ok((self.make_shard(index)?, index)),
        }
    }

    fn shard(&self, index: usize) -> Option<&Shard<S>> {
        // Acquire: pairs with the release in `make_shard`.
        let shard = self.shards[index].load(Ordering::Acquire);
        // SAFETY: a shard that was published stays until `self` is dropped.
        unsafe { shard.cast::<Shard<S>>().as_ref() }
    }

    #[cold]
    fn make_shard(&self, index: usize) -> Result<&Shard<S>, Error> {
        let made = try_box(Padded(Shard::<S>::new()))?;
        S::Machine::label_value(&*made, "Object.shard");
        let made = Box::into_raw(made);
        // Release: a task that finds the shard finds it whole. Another task on this CPU may have
        // been faster.
        let won = self.shards[index].compare_exchange(
            ptr::null_mut(),
            made.cast(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if won.is_err() {
            // SAFETY: made above, and no task has seen it.
            drop(unsafe { Box::from_raw(made) });
        }
        let shard = self.shard(index).expect("there is one now");
        // Pairs with the fence in `close`.
        S::Machine::fence(Ordering::SeqCst);
        if self.closed.load(Ordering::Relaxed) != 0 {
            self.close_shard(shard);
        }
        Ok(shard)
    }

    /// Counts one handle more.
    pub(super) fn add_handle(&self) {
        // Relaxed: the caller has one, which keeps the object.
        let old = self.counts.handles.fetch_add(1, Ordering::Relaxed);
        debug_assert!(old > 0, "an object that is closed gets a handle");
    }

    /// Counts one handle less. Returns true if it was the last.
    pub(super) fn drop_handle(&self) -> bool {
        // AcqRel: the task that drops the last one sees what others did before they dropped theirs.
        let old = self.counts.handles.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(old > 0, "an object is closed twice");
        old == 1
    }

    /// Begins to count the shards that keep the object: the last handle has gone.
    pub(super) fn close(&self) {
        // Then a fence: pairs with the one in `make_shard`.
        self.closed.publish(1);
        for shard in (0..self.shards.len()).filter_map(|index| self.shard(index)) {
            self.close_shard(shard);
        }
    }

    /// Marks the shard closed, and counts it if it has attachments.
    fn close_shard(&self, shard: &Shard<S>) {
        let mut list = shard.list().lock();
        if !list.closed {
            list.closed = true;
            if !list.ranges.is_empty() {
                self.count_shard();
            }
        }
    }

    /// Counts one shard more, where some are counted already.
    fn count_shard(&self) {
        // Relaxed: the caller keeps the object otherwise.
        let old = self.counts.shards.fetch_add(1, Ordering::Relaxed);
        debug_assert!(old > 0, "an object that goes gets attachments");
    }

    /// Puts a new attachment on the list.
    pub(super) fn insert(&self, shard: &Shard<S>, attachment: NonNull<Attachment<S>>) {
        let mut list = shard.list().lock();
        if list.closed && list.ranges.is_empty() {
            self.count_shard();
        }
        // SAFETY: it is the caller's.
        shard.reach.widen(unsafe { attachment.as_ref() }.pages());
        // SAFETY: it is new, and is taken out before it goes.
        unsafe { list.ranges.insert(attachment.as_ptr()) };
    }
}

/// Takes an attachment whose last reference has gone off its list, and frees it.
///
/// # Safety
/// The last reference has gone, and the caller dropped it.
pub(super) unsafe fn detach<S: System>(place: NonNull<Attachment<S>>) {
    // SAFETY: on its list until it is taken off here, with the object.
    let (object, is_last) = unsafe {
        let attachment = place.as_ref();
        let object = attachment.object_pointer();
        let shard = object.as_ref().life.shard(attachment.shard as usize);
        let mut list = shard.expect("the shard that lists it").list().lock();
        machine::invariant!(
            S::Machine: !list.ranges.is_empty(),
            "the attachment is on another list"
        );
        list.ranges.remove(attachment);
        (object, list.closed && list.ranges.is_empty())
    };
    // SAFETY: from `Attached::make`, and no task finds it any more.
    drop(unsafe { Box::from_raw(place.as_ptr()) });
    if is_last {
        // SAFETY: the shard was counted, and its attachments are gone.
        unsafe { count_down(object) };
    }
}

/// Decrements the counter of a closed object, and frees the object at 0.
///
/// # Safety
/// The count is the caller's.
pub(super) unsafe fn count_down<S: System>(object: NonNull<Object<S>>) {
    // SAFETY: the counter is not 0 yet.
    let counts = unsafe { &object.as_ref().life.counts };
    // AcqRel: the task that counts the last one sees all that the others did.
    let old = counts.shards.fetch_sub(1, Ordering::AcqRel);
    debug_assert!(old > 0, "an object goes twice");
    if old == 1 {
        // SAFETY: from `ObjectRef::first`; neither a handle nor an attachment is left.
        drop(unsafe { Box::from_raw(object.as_ptr()) });
    }
}

impl<S: System> Drop for Life<S> {
    fn drop(&mut self) {
        for shard in &self.shards {
            let shard = shard.load(Ordering::Relaxed).cast::<Padded<Shard<S>>>();
            if !shard.is_null() {
                // SAFETY: from `make_shard`; no other user is left.
                drop(unsafe { Box::from_raw(shard) });
            }
        }
    }
}

/// The position of a walk over attachments.
struct Walk {
    shard: usize,
    after: Option<Position>,
}

impl<S: System> Object<S> {
    /// Calls `visit` once with each attachment that exists during the whole call, and with some of
    /// those that are made or dropped meanwhile. No lock is held then.
    pub fn for_each_attachment(&self, mut visit: impl FnMut(&Attached<S>)) {
        let all = 0..u64::MAX;
        let mut walk = Walk::begin::<S::Machine>();
        let keep = |at: &Attachment<S>| {
            let kept = at.try_retain();
            // SAFETY: a reference that was added.
            kept.then(|| unsafe { Attached::from_raw(at) })
        };
        while let Some(attached) = walk.next(self, &all, keep) {
            visit(&attached);
        }
    }

    /// The owners that map some of `pages`, each with the address range and the object's first page
    /// there: all whose mappings exist from the call until they are returned. Each step takes the
    /// lock of one shard or more, and O(log attachments) under it; none is held between steps, and
    /// nothing is allocated.
    ///
    /// # Safety
    /// All owners are null, or `T`s, each in an `Arc` that stays while an attachment of its own is
    /// listed.
    pub(crate) unsafe fn mappers<T>(&self, pages: Range<u64>) -> impl Iterator<Item = Mapper<T>> {
        let mut walk = Walk::begin::<S::Machine>();
        iter::from_fn(move || {
            // SAFETY: the shard's lock keeps it listed, so by the caller's promise the owner is
            // there.
            walk.next(self, &pages, |at| unsafe { at.mapper() })
        })
    }

    /// Calls `visit` with the owners that map some of `pages` and their attachments, under the lock
    /// of their shard.
    ///
    /// # Safety
    /// All owners are null, or `T`s, each in an `Arc` that stays while an attachment of its own is
    /// listed.
    pub(crate) unsafe fn visit_mappers<T>(
        &self,
        pages: Range<u64>,
        mut visit: impl FnMut(&T, &Attachment<S>),
    ) {
        for index in 0..self.life.shards.len() {
            let shard = self.life.shard(index);
            let Some(shard) = shard.filter(|shard| shard.reach.meets(&pages)) else {
                continue;
            };
            let (list, mut after) = (shard.list().lock(), None);
            while let Some((at, place)) = list.ranges.next(&pages, after) {
                after = Some(place);
                // SAFETY: the shard's lock keeps it listed, so by the caller's promise the owner is
                // there.
                if let Some(owner) = unsafe { at.owner().cast::<T>().as_ref() } {
                    visit(owner, at);
                }
            }
        }
    }
}

impl Walk {
    fn begin<M: Machine>() -> Self {
        // Pairs with the fence in `Reach::widen`.
        M::fence(Ordering::SeqCst);
        Walk {
            shard: 0,
            after: None,
        }
    }

    /// The result of `keep` for the next attachment of `object` that maps some of `pages` and for
    /// which `keep` returns one. Under the lock of its shard.
    fn next<S: System, R>(
        &mut self,
        object: &Object<S>,
        pages: &Range<u64>,
        keep: impl Fn(&Attachment<S>) -> Option<R>,
    ) -> Option<R> {
        while self.shard < object.life.shards.len() {
            let shard = object.life.shard(self.shard);
            if let Some(shard) = shard.filter(|shard| shard.reach.meets(pages)) {
                let list = shard.list().lock();
                while let Some((at, place)) = list.ranges.next(pages, self.after) {
                    self.after = Some(place);
                    if let Some(kept) = keep(at) {
                        return Some(kept);
                    }
                }
            }
            (self.shard, self.after) = (self.shard + 1, None);
        }
        None
    }
}

/// The owner of an attachment, where it maps the object, and from which of its pages on.
pub(crate) type Mapper<T> = (Arc<T>, VaRange, u64);
