//! A leaf of an object's tree: a run of entries, and their object.

use super::HEAP;
use super::entry::Entry;
use crate::error::Error;
use alloc::alloc::{Layout, alloc, dealloc};
use core::array;
use core::mem::offset_of;
use core::num::NonZeroUsize;
use core::ops::Range;
use core::ptr::NonNull;
use machine::Machine;

/// Entries in a leaf: a leaf is 512 bytes, and its first cache line is the header.
pub(super) const ENTRIES: usize = 56;

/// Entries, and the way back from each to its object and index: a leaf is aligned to its
/// size, so an entry's address leads to it.
///
/// The header is written once. Eight entries share a line, as eight of the hardware's do.
#[repr(C)]
pub(super) struct Leaf<M: Machine> {
    /// The object, whose type depends on policies that do not matter here.
    pub(super) object: NonNull<()>,
    /// The index of the first entry.
    first: u64,
    entries: Lines<M>,
}

#[repr(align(64))]
struct Lines<M: Machine>([Entry<M>; ENTRIES]);

impl<M: Machine> Leaf<M> {
    const LAYOUT: Layout = {
        // A checker's atomics are larger than the plain ones.
        let plain = size_of::<M::AtomicU8>() == 1;
        assert!(!plain || size_of::<Self>() == 512);
        let size = size_of::<Self>();
        match Layout::from_size_align(size, size.next_power_of_two()) {
            Ok(layout) => layout,
            Err(_) => panic!("a leaf is small"),
        }
    };

    /// A leaf of `object` from index `first` on.
    pub(super) fn allocate(object: NonNull<()>, first: u64) -> Result<NonNull<Self>, Error> {
        debug_assert!(
            first.is_multiple_of(ENTRIES as u64),
            "page {first} begins no leaf"
        );
        // SAFETY: the layout is not empty.
        let place = NonNull::new(unsafe { alloc(Self::LAYOUT) }.cast::<Self>()).ok_or(HEAP)?;
        let leaf = Leaf {
            object,
            first,
            entries: Lines(array::from_fn(|_| Entry::new())),
        };
        // SAFETY: just allocated for a leaf.
        unsafe { place.write(leaf) };
        M::label(place.as_ptr().cast(), size_of::<Self>(), "Object.leaf");
        Ok(place)
    }

    /// Gives a leaf back.
    ///
    /// # Safety
    /// It is from [`Leaf::allocate`], and is not used any more.
    pub(super) unsafe fn free(leaf: NonNull<Self>) {
        // SAFETY: from `allocate`, and not used any more, as the caller says.
        unsafe {
            leaf.drop_in_place();
            dealloc(leaf.as_ptr().cast(), Self::LAYOUT);
        }
    }

    /// The leaf of the entry at this address.
    pub(super) fn of(entry: NonZeroUsize) -> *const Self {
        let address = entry.get() & !(Self::LAYOUT.align() - 1);
        core::ptr::with_exposed_provenance(address)
    }

    /// The entry at this address.
    pub(super) fn entry_at(&self, entry: NonZeroUsize) -> &Entry<M> {
        &self.entries.0[self.place(entry)]
    }

    /// The index of the entry at this address.
    pub(super) fn index_at(&self, entry: NonZeroUsize) -> u64 {
        self.first + self.place(entry) as u64
    }

    fn place(&self, entry: NonZeroUsize) -> usize {
        let start = core::ptr::from_ref(self).addr() + offset_of!(Self, entries);
        let bytes = entry.get() - start;
        debug_assert!(
            bytes.is_multiple_of(size_of::<Entry<M>>()),
            "no entry begins at {entry:#x}"
        );
        bytes / size_of::<Entry<M>>()
    }

    /// The entries of `range` with their indices.
    pub(super) fn entries(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Entry<M>)> {
        let place = |index: u64| index.saturating_sub(self.first).min(ENTRIES as u64) as usize;
        let (start, end) = (place(range.start), place(range.end));
        (self.first + start as u64..).zip(&self.entries.0[start..end.max(start)])
    }

    /// The entry of `index`, which is one of the leaf's.
    #[inline]
    pub(super) fn entry(&self, index: u64) -> &Entry<M> {
        &self.entries.0[(index - self.first) as usize]
    }
}
