//! Superpages: 2 MiB of private memory mapped by one entry.
//!
//! As in FreeBSD: reserve, promote, demote. The first page of a slot that may use superpages
//! reserves an aligned block of frames ([`reserve`]), further pages take their places in it, and
//! when all 512 are there, with equal rights, the entry of level 1 that led to the leaf table maps
//! the block instead ([`promote`]). A change of a part puts the table back ([`demote`]).
//!
//! # The leaf table stays
//! The leaf table stays with the slot, so demotion needs no memory and cannot fail. It
//! still says which frames are mapped; rights, accessed and dirty bits are in the superpage's
//! entry alone. Each page keeps its PV entry: promotion saves no memory there, and demotion needs
//! none. (FreeBSD has one PV entry for a superpage and must find 511 to demote it.) Counts
//! of pages do not change either.
//!
//! # Protocol
//! [`Size`] says how a slot is mapped. It is exact under the slot's lock; changes to and from
//! [`Size::Superpage`] also need the PV locks of all 512 pages ([`PvRun`], case study 002), so
//! under any one of them the entry that maps a page is known, and does not change:
//! [`crate::Vm::test_referenced`] needs no slot.
//!
//! - **promote**: run locked; exchange the table for the superpage; flush the 2 MiB; the marks
//!   that CPUs have made in the table until then go into the superpage. A dirty page makes all
//!   of it dirty.
//! - **demote**: run locked; write the table with the superpage's bits in each entry, and exchange
//!   it for the superpage, again if the walker has marked that meanwhile. No flush: the translation
//!   stays the same, and an operation that then changes a page flushes its address, which forgets
//!   the superpage too. A page that a CPU writes through a superpage it has cached as dirty is
//!   dirty in the table.
//! - **removal by the reverse map** has one page's lock and needs the slot's and the run's: it
//!   tries them, and if that fails it releases the page, locks the slot, then the run, demotes,
//!   locks the page again, and looks again.
//!
//! Changes of the whole slot (unmap, discard, other rights) concern the superpage's entry
//! and need no demotion. Fork demotes: a child needs an entry and a PV entry for each page
//! anyway, and the first store on either side would demote. When the pages are alone and
//! writable again they are promoted again. Moving demotes; moved pages stay pages.
//!
//! # Lock order
//! Slots, then the run's pages in ascending order. A task that has a page's lock and waits for
//! another is locking such a run; one that has a single page's lock only tries a slot's.

mod demote;
mod promote;
mod reserve;
mod run;
mod whole;

// The checker's stacks are too small for code that is not optimised.
#[cfg(all(test, not(debug_assertions)))]
mod model;
#[cfg(test)]
mod tests;

use super::bits;
use super::tables::TABLE;
use super::{Entry, Pmap};
use crate::page::{Page, PvList};
use crate::pv::Table;
use crate::system::{PvLocking, System};
use crate::tree::{Part, Size};
use machine::{Atomic, Atomics, Frame, Ordering, PAGE_SHIFT, pte};
pub(crate) use run::PvRun;

/// Bits that the walker sets.
const USED: u64 = pte::ACCESSED | pte::DIRTY;

impl<S: System> Pmap<S> {
    /// The number of slots that were mapped by superpages a moment ago. O(slots).
    pub fn superpages(&self) -> usize {
        let places = self.tree.places(crate::tree::ALL);
        let is_superpage = |place: &crate::tree::Place<'_, S>| place.slot.size() == Size::Superpage;
        places.filter(is_superpage).count()
    }

    /// The word that maps the page at the start of `part`, whose slot has a table.
    pub(in crate::pmap) fn mapping(
        &self,
        part: &Part<'_, S>,
        leaf: Frame,
    ) -> &<S::Machine as Atomics>::AtomicU64 {
        let address = part.range().start;
        match part.size() {
            Size::Superpage => self.superpage(address),
            Size::Pages | Size::Run | Size::Shared => self.entry(leaf, 0, address),
        }
    }

    /// The entry that maps the start of `part`.
    #[inline]
    pub(crate) fn entry_at(&self, part: &Part<'_, S>) -> Entry {
        Entry::decode(self.bits_at(part))
    }

    /// The bits of the entry at the start of `part`, to be decoded: 0 where there is no table.
    #[inline]
    pub(crate) fn bits_at(&self, part: &Part<'_, S>) -> u64 {
        let Some(leaf) = part.leaf().get() else {
            return 0;
        };
        let bits = self.mapping(part, leaf).load(Ordering::Relaxed);
        match part.size() {
            Size::Superpage => piece(bits, pte::index(part.range().start, 0)),
            Size::Pages | Size::Run => bits,
            // No task writes through the entry that leads to a shared table.
            Size::Shared => bits & !pte::WRITABLE,
        }
    }

    /// The entry of level 1 at `address`, whose leaf table is there.
    pub(in crate::pmap) fn superpage(&self, address: usize) -> &<S::Machine as Atomics>::AtomicU64 {
        let mut table = self.root;
        for level in (2..pte::LEVELS).rev() {
            let below = self.below(table, level, address);
            table = below.expect("a leaf table has tables above");
        }
        self.entry(table, 1, address)
    }

    /// Returns true if the superpage that maps `frame` at `address` has been used. One bit stands
    /// for 512 pages, so it is cleared for one of them only, another one in each superpage;
    /// otherwise the other 511 would look unused (FreeBSD does the same). Under the page's PV lock.
    pub(in crate::pmap) fn test_superpage(&self, address: usize, frame: Frame) -> bool {
        machine::invariant!(
            S::Machine: self.vm.is_pv_locked(frame),
            "a superpage may end meanwhile"
        );
        let superpage = self.superpage(address);
        let first = Frame(frame.0 - pte::index(address, 0) as u32);
        debug_assert!(
            first.index().is_multiple_of(pte::ENTRIES),
            "{frame:?} is not at its place of a superpage"
        );
        let number = address >> (PAGE_SHIFT + pte::ENTRIES.ilog2());
        if number % pte::ENTRIES == pte::index(address, 0) {
            return bits::take(superpage, first, pte::ACCESSED);
        }
        superpage.load(Ordering::Relaxed) & pte::ACCESSED != 0
    }

    /// Locks the PV lists of the pages of the block that begins with `first`, while the caller
    /// holds the slot that they are mapped in.
    #[track_caller]
    fn lock_run(&self, first: Frame) -> Superpage<'_, S> {
        debug_assert!(
            first.index().is_multiple_of(pte::ENTRIES),
            "{first:?} begins no block"
        );
        PvRun::lock(self.pages_from(first), pte::ENTRIES)
    }

    /// Returns true if the lists of all pages of the block are locked, for assertions of the task
    /// that has locked them.
    fn is_run_locked(&self, first: Frame) -> bool {
        (0..pte::ENTRIES).all(|index| self.vm.is_pv_locked(frame_at(first, index)))
    }

    /// The descriptors of the block that begins with `first`.
    fn pages_from(&self, first: Frame) -> Pages<'_, S> {
        Pages { pmap: self, first }
    }
}

/// The PV lists of a superpage's pages.
type Superpage<'a, S> = PvRun<'a, S, Pages<'a, S>>;

/// The pages of a block.
#[derive(Clone, Copy)]
struct Pages<'a, S: System> {
    pmap: &'a Pmap<S>,
    first: Frame,
}

impl<'a, S: System> run::PageAt<'a, S> for Pages<'a, S> {
    fn at(&self, index: usize) -> &'a Page<S> {
        self.pmap.vm.page(frame_at(self.first, index))
    }

    #[track_caller]
    fn lock_first(&self) -> PvList<'a, S> {
        self.pmap.vm.lock_pv(self.first)
    }

    #[track_caller]
    fn try_lock_first(&self) -> Option<PvList<'a, S>> {
        self.pmap.vm.try_lock_pv(self.first)
    }

    fn have_one_lock(&self) -> bool {
        self.pmap.vm.pv_locks().is_per_block()
    }
}

/// The frame at `index` of the block that begins with `first`.
const fn frame_at(first: Frame, index: usize) -> Frame {
    Frame(first.0 + index as u32)
}

/// The entry at `index` of a leaf table that maps the same as `superpage`.
const fn piece(superpage: u64, index: usize) -> u64 {
    debug_assert!(index < pte::ENTRIES, "a superpage has no such page");
    (superpage & !pte::HUGE) + ((index as u64) << PAGE_SHIFT)
}

/// The entry that leads to `leaf`.
pub(in crate::pmap) fn table(leaf: Table) -> u64 {
    leaf.get().expect("a mapping has a table").address() | TABLE
}
