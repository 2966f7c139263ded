//! The content of a leaf table's entry, and changes of it.
//!
//! | bits | meaning |
//! |---|---|
//! | present, not `OBJECT` | a page of private memory; with `KIN` one that a fork may have shared |
//! | present, `OBJECT` | a page of an object |
//! | not present, `SWAPPED` | the slot of the swap space, from bit 12 up, that has the page |
//! | 0 | nothing |
//!
//! A writable entry of private memory says that the page is only this mapping's; where
//! stores are private, an object's page is never writable.

use super::Pmap;
use crate::prot::Prot;
use crate::pv::Table;
use crate::system::System;
use crate::tree::{Kind, Part, Size};
use core::iter;
use machine::{Atomic, Atomics, Frame, Memory, Ordering, PAGE_SHIFT, PAGE_SIZE, VaRange, pte};

/// A present entry names a page of an object.
const OBJECT: u64 = 1 << 9;
/// A present entry of private memory stands for a PV entry of kin's ([`super::kin`]).
pub(super) const KIN: u64 = 1 << 11;
/// An entry that is not present names a slot of the swap space.
const SWAPPED: u64 = 1 << 10;

/// Some bit of these is set in each entry that is not empty.
pub(super) const USED: u64 = pte::PRESENT | SWAPPED;

/// An entry, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing.
    Empty,
    /// A page is mapped.
    Page {
        /// The page's frame.
        frame: Frame,
        /// The kind of the mapping.
        kind: Kind,
        /// True if tasks may write it through this entry.
        writable: bool,
    },
    /// The page is in this slot of the swap space.
    Swapped(u32),
}

impl Entry {
    pub(crate) const fn decode(bits: u64) -> Self {
        if bits & pte::PRESENT != 0 {
            Entry::Page {
                frame: pte::frame(bits),
                kind: kind(bits),
                writable: bits & pte::WRITABLE != 0,
            }
        } else if bits & SWAPPED != 0 {
            Entry::Swapped((bits >> PAGE_SHIFT) as u32)
        } else {
            Entry::Empty
        }
    }

    /// Returns true if the page in `frame` is mapped.
    pub(crate) fn maps(self, frame: Frame) -> bool {
        matches!(self, Entry::Page { frame: mapped, .. } if mapped == frame)
    }
}

/// The kind of an entry that is not empty.
pub(super) const fn kind(bits: u64) -> Kind {
    if bits & pte::PRESENT == 0 {
        Kind::Swapped
    } else if bits & OBJECT != 0 {
        Kind::Object
    } else {
        Kind::Private
    }
}

/// The entry of a page that tasks may use with these rights.
#[inline]
pub(super) const fn page(frame: Frame, kind: Kind, rights: Prot) -> u64 {
    debug_assert!(
        !matches!(kind, Kind::Swapped),
        "a page in the swap space is mapped"
    );
    let object = match kind {
        Kind::Object => OBJECT,
        _ => 0,
    };
    frame.address() | object | rights.bits() | pte::PRESENT
}

/// The entry of a page that is in the swap space.
pub(super) const fn swapped(slot: u32) -> u64 {
    (slot as u64) << PAGE_SHIFT | SWAPPED
}

impl<S: System> Pmap<S> {
    /// Writes the entry at the start of `part`, which is empty.
    #[inline]
    pub(super) fn write(&self, part: &mut Part<'_, S>, bits: u64) {
        let leaf = part.leaf().get().expect("a mapping has a table");
        let entry = self.entry(leaf, 0, part.range().start);
        debug_assert!(bits & USED != 0, "an entry is made of nothing");
        machine::invariant!(
            S::Machine: entry.load(Ordering::Relaxed) == 0,
            "something is mapped where an entry is made"
        );
        machine::invariant!(
            S::Machine: matches!(part.size(), Size::Pages | Size::Run),
            "an entry is made in a table of {:?} pages", part.size()
        );
        machine::invariant!(
            S::Machine: kind(bits) != Kind::Private
                || self.vm.pv_chunks().is_some()
                || part.pv_tables().entry(part.range().start).is_some(),
            "a page is mapped that has no PV entry"
        );
        // Release: a walker that finds the page finds its content.
        entry.store(bits, Ordering::Release);
        part.add(kind(bits), 1);
        self.count_resident(isize::from(bits & pte::PRESENT != 0));
    }

    /// Puts `next` (0, or a slot of the swap space) in the place of the entry at `address`,
    /// which is not empty and no superpage's; returns the old entry.
    #[inline]
    pub(super) fn clear(&self, part: &mut Part<'_, S>, address: usize, next: u64) -> u64 {
        // Exchange: the walker may set accessed and dirty at any moment. AcqRel with
        // the walker's exchange: bits set before are seen, a later one fails.
        let old = self.to_clear(part, address).swap(next, Ordering::AcqRel);
        debug_assert!(
            old & USED != 0,
            "nothing is mapped where an entry is cleared"
        );
        debug_assert!(
            next == 0 || next & USED == SWAPPED && kind(old) == Kind::Private,
            "only private pages go to the swap space"
        );
        self.count_cleared(part, old);
        if next != 0 {
            part.add(Kind::Swapped, 1);
        }
        old
    }

    /// Clears the entry at `address`, which maps a page, unless it is marked dirty. Returns true if
    /// it did.
    pub(super) fn clear_clean(&self, part: &mut Part<'_, S>, address: usize) -> bool {
        let entry = self.to_clear(part, address);
        let mut old = entry.load(Ordering::Relaxed);
        debug_assert!(old & pte::PRESENT != 0, "no page is mapped here");
        while old & pte::DIRTY == 0 {
            // AcqRel: as in `clear`.
            match entry.compare_exchange_weak(old, 0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.count_cleared(part, old);
                    return true;
                }
                Err(now) => old = now,
            }
        }
        false
    }

    /// The entry at `address`; the slot's pages are mapped one by one from now on.
    #[inline]
    fn to_clear(
        &self,
        part: &mut Part<'_, S>,
        address: usize,
    ) -> &<S::Machine as Atomics>::AtomicU64 {
        debug_assert!(
            part.slot_range().contains(address),
            "another slot's entry is cleared"
        );
        machine::invariant!(
            S::Machine: !matches!(part.size(), Size::Superpage | Size::Shared),
            "an entry is cleared in a table of {:?} pages", part.size()
        );
        self.split(part);
        let leaf = part.leaf().get().expect("a mapping has a table");
        self.entry(leaf, 0, address)
    }

    /// Counts one entry less, one of the kind of `old`.
    #[inline]
    fn count_cleared(&self, part: &mut Part<'_, S>, old: u64) {
        part.add(kind(old), -1);
        self.count_resident(-isize::from(old & pte::PRESENT != 0));
    }

    /// The used entries of `part`, whose table is its slot's own. The search ends when all entries
    /// of the slot are found.
    #[inline]
    pub(super) fn used_in(
        &self,
        part: &Part<'_, S>,
    ) -> impl Iterator<Item = (usize, u64)> + use<'_, S> {
        let count = part.slot().entries();
        self.used(part.leaf(), part.range()).take(count)
    }

    /// The entries of `range`, which is one slot's with this leaf table, in order, with their
    /// addresses.
    #[inline]
    pub(super) fn used(
        &self,
        leaf: Table,
        range: VaRange,
    ) -> impl Iterator<Item = (usize, u64)> + use<'_, S> {
        let machine = self.vm.machine();
        let first = pte::index(range.start, 0);
        let (mut next, past) = (first, first + range.pages());
        debug_assert!(
            past <= pte::ENTRIES || leaf.get().is_none(),
            "{range:?} has several tables"
        );
        iter::from_fn(move || {
            if next == past {
                return None;
            }
            // SAFETY: the slot's leaf table, which stays while the slot is locked.
            let (index, bits) = unsafe { machine.find_word(leaf.get()?, next, past, USED) }?;
            next = index + 1;
            Some((range.start + (index - first) * PAGE_SIZE, bits))
        })
    }
}
