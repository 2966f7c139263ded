//! A slot: the part of an address space that one lock covers.

use super::extent::{Extent, Rights};
use super::region::Regions;
use crate::error::{Error, Resource};
use crate::lock::SlotLock;
use crate::pmap::Chunks;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::{ptr, slice};
use machine::{Atomic, Frame, Machine, Ordering, SharedCell};
use sync::RawLock;

/// Slots in a node.
pub(super) const FAN_OUT: usize = 1 << FAN_OUT_SHIFT;
/// log2 of [`FAN_OUT`].
pub(super) const FAN_OUT_SHIFT: u32 = 6;

/// 2 MiB, or 64 times as much with each level: one cache line, which holds all that an
/// operation writes to change what is mapped there.
///
/// A slot is *empty*, *whole* (mapped from end to end with equal rights), in *parts*
/// (level 0 only), or *subdivided*: then its node says all, for good.
#[repr(C, align(64))]
pub(crate) struct Slot<M: Machine> {
    /// The first of the node's slots; null until subdivided, then fixed. Stored with
    /// release under `lock`; whoever finds it goes there and leaves this line alone.
    child: M::AtomicPtr,
    /// An [`Extent`] as a byte. Written under `lock`.
    extent: M::AtomicU8,
    pub(super) lock: SlotLock<M>,
    /// Pages present; 0 above level 0. Written under `lock`, read by anybody.
    resident: M::AtomicU16,
    /// What else `lock` protects.
    inside: M::Cell<Inside<M>>,
}

/// What a slot of level 0 has, beside its extent.
pub(crate) struct Inside<M: Machine> {
    /// What is mapped, if the extent is [`Extent::Parts`]; otherwise empty, with the
    /// room it had.
    pub(super) parts: Regions,
    /// The PV chunks that have room.
    pub(crate) chunks: Chunks<M>,
    /// The hardware's table. Once made it stays.
    pub(crate) leaf: Option<Frame>,
}

impl<M: Machine> Slot<M> {
    /// A slot without pages.
    pub(super) fn new(extent: Extent) -> Self {
        const {
            // A checker's atomics are larger than what they stand for.
            assert!(size_of::<M::AtomicU8>() != 1 || size_of::<Self>() == 64);
        }
        Slot {
            child: M::AtomicPtr::new(ptr::null_mut()),
            extent: M::AtomicU8::new(extent.to_byte()),
            lock: RawLock::new(),
            resident: M::AtomicU16::new(0),
            inside: M::Cell::new(Inside {
                parts: Regions::default(),
                chunks: Chunks::EMPTY,
                leaf: None,
            }),
        }
    }

    /// The node below, if the slot is subdivided.
    #[inline]
    pub(super) fn child(&self) -> Option<&[Slot<M>]> {
        // Acquire: pairs with the release in `subdivide`.
        let first = self.child.load(Ordering::Acquire).cast::<Slot<M>>();
        // SAFETY: a node has so many slots, is whole when it is published, and stays
        // until this slot is dropped.
        (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, FAN_OUT) })
    }

    /// What is mapped. Exact under the lock if there is no child; else a hint.
    #[inline]
    pub(super) fn extent(&self) -> Extent {
        // Acquire: what the reader loads next is not older.
        Extent::from_byte(self.extent.load(Ordering::Acquire))
    }

    /// Under the lock.
    #[inline]
    pub(super) fn set_extent(&self, extent: Extent) {
        self.extent.store(extent.to_byte(), Ordering::Release);
    }

    /// Pages present, a moment ago.
    #[inline]
    pub(crate) fn resident(&self) -> usize {
        usize::from(self.resident.load(Ordering::Relaxed))
    }

    /// Under the lock.
    #[inline]
    pub(super) fn add_resident(&self, delta: i16) {
        let now = self.resident.load(Ordering::Relaxed);
        let next = now.wrapping_add_signed(delta);
        self.resident.store(next, Ordering::Relaxed);
    }

    /// What the lock protects; to be used under it only.
    #[inline]
    pub(super) fn inside(&self) -> *mut Inside<M> {
        self.inside.write()
    }

    /// Says the same with a node of slots below. Under the lock; above level 0.
    #[cold]
    pub(super) fn subdivide(&self) -> Result<(), Error> {
        let mut node = Vec::new();
        node.try_reserve_exact(FAN_OUT)
            .map_err(|_| Error::OutOfMemory(Resource::Heap))?;
        let extent = self.extent();
        debug_assert!(!matches!(extent, Extent::Parts));
        node.extend((0..FAN_OUT).map(|_| Slot::<M>::new(extent)));
        let node = Box::leak(node.into_boxed_slice());
        M::label(node.as_ptr().cast(), size_of_val(node), "Slot");
        // Release: who finds the node finds it filled. Pairs with the acquire in `child`.
        self.child
            .store(node.as_mut_ptr().cast(), Ordering::Release);
        Ok(())
    }
}

impl<M: Machine> Drop for Slot<M> {
    fn drop(&mut self) {
        let first = self.child.load(Ordering::Relaxed).cast::<Slot<M>>();
        if !first.is_null() {
            // SAFETY: a box leaked by `subdivide`, and nobody else is left.
            drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(first, FAN_OUT)) });
        }
    }
}

impl Rights {
    /// The extent of a slot that is mapped so from end to end, or of an empty one.
    pub(super) fn whole(rights: Option<Rights>) -> Extent {
        rights.map_or(Extent::Empty, Extent::Whole)
    }
}
