//! Attachments: where an object is mapped, and by which owner.

use super::life::Mapper;
use super::ranges::Links;
use super::{Object, life};
use crate::error::Error;
use crate::heap::try_box;
use crate::system::System;
use alloc::sync::Arc;
use core::ops::{Deref, Range};
use core::ptr::NonNull;
use machine::{Atomic, AtomicInt, Atomics, Ordering, PAGE_SHIFT, PAGE_SIZE, VaRange, pte};

/// One mapping of an object, made by an `mmap` or inherited at a fork. It takes a cache line, and
/// another for its links in the shard.
///
/// It keeps the object alive, and the object finds it ([`Object::for_each_attachment`]).
#[repr(C, align(64))]
pub struct Attachment<S: System> {
    object: NonNull<Object<S>>,
    owner: *const (),
    /// The index of the object's page at address 0, wrapping.
    delta: u64,
    range: VaRange,
    /// The number of [`Attached`] references.
    references: <S::Machine as Atomics>::AtomicU32,
    /// The shard that lists it: that of the CPU on which it was made.
    pub(super) shard: u32,
    /// Its links in the shard's tree. Under the shard's lock.
    pub(super) links: <S::Machine as Atomics>::Cell<Links<S>>,
}

// SAFETY: the object may be used by all CPUs, and the owner is a number here; the rest is
// written once, atomic, or under a lock.
unsafe impl<S: System> Send for Attachment<S> {}
// SAFETY: all that changes is atomic, or is used under the shard's lock.
unsafe impl<S: System> Sync for Attachment<S> {}

impl<S: System> Attachment<S> {
    /// The object.
    pub fn object(&self) -> &Object<S> {
        // SAFETY: an attachment keeps its object.
        unsafe { self.object.as_ref() }
    }

    /// The mapping's owner, as given to [`Object::attach`].
    pub fn owner(&self) -> *const () {
        self.owner
    }

    /// The addresses at which it was mapped. Parts may have been unmapped since.
    pub fn range(&self) -> VaRange {
        self.range
    }

    /// The object's page at `address`.
    pub fn index(&self, address: usize) -> u64 {
        self.delta.wrapping_add((address >> PAGE_SHIFT) as u64)
    }

    /// The object's pages that it maps. Growth may have carried the last ones beyond the largest
    /// object.
    pub(super) fn pages(&self) -> Range<u64> {
        let first = self.index(self.range.start);
        first..first.saturating_add(self.range.pages() as u64)
    }

    /// Returns true if both map the same object with the same offset: then a mapping by one that
    /// begins where a mapping by the other ends continues it in the object.
    pub(crate) fn goes_on_in(&self, other: &Self) -> bool {
        self.object == other.object && self.delta == other.delta
    }

    /// The address at which the object's page `index` was mapped, if it was.
    pub fn address(&self, index: u64) -> Option<usize> {
        let page = index.wrapping_sub(self.index(self.range.start));
        let inside = page < self.range.pages() as u64;
        inside.then(|| self.range.start + page as usize * PAGE_SIZE)
    }

    /// The part of `range`, which it maps, that lies before the object's end. For an operation that
    /// passes on private copies under the lock of the slots that get them, with this attachment
    /// listed: pages behind the end must not be copied, since a truncation may have searched for
    /// copies there before.
    pub(crate) fn reached(&self, range: VaRange) -> VaRange {
        debug_assert!(
            self.range.common(range) == range,
            "{range:?} is not mapped by it"
        );
        // Pairs with the publication of the size in `Object::truncate`: this sees the size, or the
        // truncation sees the attachment and the slots, and waits for their lock.
        S::Machine::fence(Ordering::SeqCst);
        let left = self
            .object()
            .pages()
            .saturating_sub(self.index(range.start));
        VaRange::sized(
            range.start,
            left.min(range.pages() as u64) as usize * PAGE_SIZE,
        )
    }

    /// This mapping in another space, as a fork makes it.
    ///
    /// # Safety
    /// The owner is null, or a [`crate::Pmap`] of the same policies, in an `Arc` that stays as long
    /// as an attachment of its own is listed.
    pub unsafe fn inherit(&self, owner: *const ()) -> Result<Attached<S>, Error> {
        Attached::make(self.object(), owner, self.range, self.delta)
    }

    /// A reference to its owner, the mapped addresses, and the object's first page there; `None` if
    /// it has no owner.
    ///
    /// # Safety
    /// The owner is null, or a `T` in an `Arc`, and it is there.
    pub(super) unsafe fn mapper<T>(&self) -> Option<Mapper<T>> {
        let owner = self.owner.cast::<T>();
        if owner.is_null() {
            return None;
        }
        // SAFETY: the caller promises that it lives in an `Arc`, and that this is not gone.
        let owner = unsafe {
            Arc::increment_strong_count(owner);
            Arc::from_raw(owner)
        };
        Some((owner, self.range, self.index(self.range.start)))
    }

    pub(super) fn object_pointer(&self) -> NonNull<Object<S>> {
        self.object
    }

    /// Adds a reference unless the last has gone.
    pub(super) fn try_retain(&self) -> bool {
        let more =
            |now: u32| (now != 0).then(|| now.checked_add(1).expect("references to an attachment"));
        // Relaxed: a task that found it here found it whole under the shard's lock.
        let retained = self
            .references
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        retained.is_ok()
    }
}

impl<S: System> Object<S> {
    /// Records that `owner` maps the object's pages from `first` on at `range`.
    ///
    /// O(log attachments of this CPU); different CPUs write different cache lines. The same holds
    /// for dropping it on the CPU that made it.
    ///
    /// # Safety
    /// The owner is null, or a [`crate::Pmap`] of the same policies, in an `Arc` that stays as long
    /// as an attachment of its own is listed.
    pub unsafe fn attach(
        &self,
        owner: *const (),
        range: VaRange,
        first: u64,
    ) -> Result<Attached<S>, Error> {
        let end = first.checked_add(range.pages() as u64);
        if end.is_none_or(|end| end > super::MAX_PAGES) {
            let reason = "the mapping reaches beyond the largest object";
            return Err(Error::Invalid { reason });
        }
        self.reattach(owner, range, first)
    }

    /// Attaches a mapping that has moved or grown. Growth may carry it beyond the largest object,
    /// as on Linux: touching it there is touching it behind the object's end.
    pub(crate) fn reattach(
        &self,
        owner: *const (),
        range: VaRange,
        first: u64,
    ) -> Result<Attached<S>, Error> {
        let delta = first.wrapping_sub((range.start >> PAGE_SHIFT) as u64);
        Attached::make(self, owner, range, delta)
    }
}

/// A counted reference to an [`Attachment`]. Each slot of a mapping has one.
///
/// Dropping the last one may end the object, which then writes its dirty pages to its store. So the
/// caller drops it where nothing is locked.
pub struct Attached<S: System>(NonNull<Attachment<S>>);

// SAFETY: a counted reference to an attachment, which CPUs share.
unsafe impl<S: System> Send for Attached<S> {}
// SAFETY: an attachment may be used by all CPUs at once.
unsafe impl<S: System> Sync for Attached<S> {}

impl<S: System> Attached<S> {
    /// An attachment of `object`, which a handle or another attachment keeps.
    fn make(
        object: &Object<S>,
        owner: *const (),
        range: VaRange,
        delta: u64,
    ) -> Result<Self, Error> {
        const {
            // A checker's atomics and cells are larger than the plain ones.
            let plain = size_of::<<S::Machine as Atomics>::AtomicU8>() == 1;
            assert!(!plain || size_of::<Attachment<S>>() == 128);
        }
        debug_assert!(
            range.start < range.end
                && (range.start | range.end).is_multiple_of(PAGE_SIZE)
                && range.end <= pte::USER_END,
            "an object is mapped at {range:?}"
        );
        let life = &object.life;
        let (shard, index) = life.own_shard()?;
        let attachment = try_box(Attachment {
            object: NonNull::from(object),
            owner,
            delta,
            range,
            references: <S::Machine as Atomics>::AtomicU32::new(1),
            shard: index as u32,
            links: machine::SharedCell::new(Links::NONE),
        })?;
        S::Machine::label_value(&*attachment, "Attachment");
        let place = NonNull::from(alloc::boxed::Box::leak(attachment));
        life.insert(shard, place);
        Ok(Attached(place))
    }

    /// Takes over a reference.
    ///
    /// # Safety
    /// It is the caller's: from [`Attached::into_raw`], or added by `try_retain`.
    pub unsafe fn from_raw(attachment: *const Attachment<S>) -> Self {
        // SAFETY: a reference is to something.
        Attached(unsafe { NonNull::new_unchecked(attachment.cast_mut()) })
    }

    /// The attachment, with this reference, for [`Attached::from_raw`].
    pub fn into_raw(self) -> *const Attachment<S> {
        core::mem::ManuallyDrop::new(self).0.as_ptr()
    }
}

impl<S: System> Deref for Attached<S> {
    type Target = Attachment<S>;

    fn deref(&self) -> &Attachment<S> {
        // SAFETY: a counted reference keeps it.
        unsafe { self.0.as_ref() }
    }
}

impl<S: System> Clone for Attached<S> {
    fn clone(&self) -> Self {
        // Relaxed: this one keeps it.
        let old = self.references.fetch_add(1, Ordering::Relaxed);
        debug_assert!(old > 0, "an attachment that goes gets a reference");
        assert!(old < u32::MAX / 2, "references to an attachment");
        Attached(self.0)
    }
}

impl<S: System> PartialEq for Attached<S> {
    /// Returns true if both are the same attachment.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<S: System> Drop for Attached<S> {
    fn drop(&mut self) {
        // AcqRel: the task that drops the last one sees what others did before they dropped theirs.
        let old = self.references.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(old > 0, "an attachment goes twice");
        if old == 1 {
            // SAFETY: the last reference, and none can be added any more.
            unsafe { life::detach(self.0) };
        }
    }
}
