//! Kin: slots that each have a leaf table, and share PV entries.
//!
//! # Protocol
//! Members join and leave, and count the pages that they have, by atomic operations on the first of
//! the PV tables, without a lock: all forks of a space, and the exits of the children, come here.
//! (The pmap's module `kin` says what they do with pages and tables.)
//!
//! - **join**: take a *seat*, an index in the family, by its bit in `word`; write the owner; then
//!   the leaf table (release). From then on walks see the member.
//! - **leave**: take the leaf table out; if a walk is under way, wait for its end; then give the
//!   seat back. The leaver has a fence between the first two. Either it comes before the walk's
//!   fence in the single total order, and the walk finds no leaf table; or it comes after, and the
//!   leaver waits. So a walk may use the owner that it finds: the member's pmap stays, and nobody
//!   else writes the seat.
//! - **walk**: under the family's lock, set [`WALK`] in `word`, and visit the seats with a leaf
//!   table.
//! - **counts**: a byte for each entry, eight in a word. A count is at most [`SEATS`], so none
//!   carries into the next.

#[cfg(test)]
mod model;

use super::Owner;
use super::Table;
use super::table::ENTRIES;
use core::array;
use machine::{Atomic, AtomicInt, Frame, Machine, Ordering, SharedCell};

/// The most members that a family has: a removal that finds a page in a leaf table that they share
/// flushes them all.
pub(super) const SEATS: usize = 32;
/// A walk is under way.
const WALK: u64 = 1 << SEATS;
/// The seats that are taken.
const TAKEN: u64 = WALK - 1;
/// Counts in a word.
const LANES: usize = 8;

/// The seats of a family. For kin `word` says which are taken; for others the family's lock
/// protects that.
pub(super) struct Seats<M: Machine> {
    /// Protected by the family's lock, or for kin by the module's protocol.
    owners: [M::Cell<Owner>; SEATS],
    /// The leaf table of each member of kin, as the bits of a [`Table`].
    leaves: [M::AtomicU32; SEATS],
    /// A bit for each seat that a member of kin has taken, and [`WALK`].
    word: M::AtomicU64,
    /// The number of leaf tables of kin that map each entry's page.
    counts: [M::AtomicU64; ENTRIES / LANES],
}

impl<M: Machine> Seats<M> {
    /// The seats of a family with one member.
    pub(super) fn of(owner: Owner) -> Self {
        Seats {
            owners: array::from_fn(|_| SharedCell::new(owner)),
            leaves: array::from_fn(|_| M::AtomicU32::new(Table::NONE.to_bits())),
            word: M::AtomicU64::new(0),
            counts: array::from_fn(|_| M::AtomicU64::new(0)),
        }
    }

    /// # Safety
    /// The family is locked, or the seat is a member's that stays.
    pub(super) unsafe fn owner(&self, seat: usize) -> Owner {
        // SAFETY: nobody writes it, as the caller says.
        unsafe { *self.owners[seat].read() }
    }

    /// # Safety
    /// The family is locked, or the seat is the caller's and no walk sees it.
    pub(super) unsafe fn set_owner(&self, seat: usize, owner: Owner) {
        // SAFETY: nobody else uses it, as the caller says.
        unsafe { *self.owners[seat].write() = owner };
    }

    /// Makes the member in `seat`, with this leaf table, the first of kin. Under the family's lock.
    pub(super) fn begin(&self, seat: u8, leaf: Frame) {
        machine::invariant!(
            M: self.word.load(Ordering::Relaxed) == 0,
            "a family becomes kin twice"
        );
        // Relaxed: walks lock the family.
        self.leaves[usize::from(seat)].store(Table::of(leaf).to_bits(), Ordering::Relaxed);
        self.word.store(1 << seat, Ordering::Relaxed);
    }

    /// Returns true if there was room for a member a moment ago.
    pub(super) fn have_room(&self) -> bool {
        self.word.load(Ordering::Relaxed) & TAKEN != TAKEN
    }

    /// Returns true if the member in `seat`, whose slot is locked, is the only one.
    pub(super) fn is_alone(&self, seat: u8) -> bool {
        // Relaxed: only it could bring others.
        self.word.load(Ordering::Relaxed) & TAKEN == 1 << seat
    }

    /// Makes a slot with this leaf table a member, if there is room, and returns its seat.
    pub(super) fn join(&self, owner: Owner, leaf: Frame) -> Option<u8> {
        let take = |word: u64| (word & TAKEN != TAKEN).then_some(word | (word + 1));
        // Acquire: pairs with the release of the member that had the seat before.
        let old = self
            .word
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, take)
            .ok()?;
        let seat = old.trailing_ones() as usize;
        machine::invariant!(
            // The seat is the caller's alone.
            M: self.leaf(seat).is_none(),
            "the seat is another member's"
        );
        // SAFETY: the seat is the caller's, and has no leaf table yet.
        unsafe { self.set_owner(seat, owner) };
        // Release: pairs with the acquire in `leaf`.
        self.leaves[seat].store(Table::of(leaf).to_bits(), Ordering::Release);
        Some(seat as u8)
    }

    /// Ends the membership of the member with this seat. Returns true if it was the last.
    pub(super) fn leave(&self, seat: u8) -> bool {
        // Relaxed: the fence orders it.
        self.leaves[usize::from(seat)].store(Table::NONE.to_bits(), Ordering::Relaxed);
        // Pairs with the fence in `begin_walk`.
        M::fence(Ordering::SeqCst);
        // Relaxed: the exchange acquires.
        M::spin_until(|| self.word.load(Ordering::Relaxed) & WALK == 0);
        // AcqRel: with the release in `end_walk`, and the acquire in `join`; and the last member
        // sees all that the others did.
        let old = self.word.fetch_and(!(1 << seat), Ordering::AcqRel);
        debug_assert!(old & 1 << seat != 0, "a member leaves twice");
        old & TAKEN == 1 << seat
    }

    /// Begins a walk over kin. Under the family's lock.
    pub(super) fn begin_walk(&self) {
        let before = self.word.fetch_or(WALK, Ordering::Relaxed);
        debug_assert!(before & WALK == 0, "two walks over one family");
        // Pairs with the fence in `leave`.
        M::fence(Ordering::SeqCst);
    }

    pub(super) fn end_walk(&self) {
        // Release: pairs with the exchange in `leave`.
        self.word.fetch_and(!WALK, Ordering::Release);
    }

    /// The leaf table of the member in `seat`, if there is one; then a walk may use the member's
    /// owner.
    pub(super) fn leaf(&self, seat: usize) -> Option<Frame> {
        // Acquire: pairs with the release in `join`.
        Table::from_bits(self.leaves[seat].load(Ordering::Acquire)).get()
    }

    /// The number of leaf tables that map the page of entry `index`.
    pub(super) fn count(&self, index: u16) -> u8 {
        // Acquire: pairs with the release in `take`.
        let word = self.counts[usize::from(index) / LANES].load(Ordering::Acquire);
        (word >> shift(index)) as u8
    }

    /// Counts one leaf table more for each entry whose bit is set; bit 0 is that of entry `first`,
    /// a multiple of 8.
    pub(super) fn add(&self, first: u16, bits: u8) {
        // Relaxed: another member, whose slot the caller has locked, maps the pages.
        let counts = &self.counts[usize::from(first) / LANES];
        let old = counts.fetch_add(spread(bits), Ordering::Relaxed);
        debug_assert!(
            lanes(old, bits).all(|count| usize::from(count) < SEATS),
            "a page is in more leaf tables than there are members"
        );
    }

    /// Counts one leaf table less for each; returns the bits of the entries that are in none any
    /// more.
    pub(super) fn take(&self, first: u16, bits: u8) -> u8 {
        // Release: pairs with the acquire in `count`; and with the acquire here of the last member
        // that lets go.
        let old = self.counts[usize::from(first) / LANES].fetch_sub(spread(bits), Ordering::AcqRel);
        debug_assert!(
            lanes(old, bits).all(|count| count > 0),
            "a page is let go of that is in no leaf table"
        );
        let is_last = |lane: &u32| bits & 1 << lane != 0 && (old >> (8 * lane)) as u8 == 1;
        (0..LANES as u32)
            .filter(is_last)
            .fold(0, |last, lane| last | 1 << lane)
    }
}

/// The counts in `word` of the entries whose bits are set.
fn lanes(word: u64, bits: u8) -> impl Iterator<Item = u8> {
    let counts = word.to_le_bytes().into_iter().zip(0..);
    counts.filter_map(move |(count, lane)| (bits >> lane & 1 != 0).then_some(count))
}

/// The lowest bit of the count of entry `index` in its word.
const fn shift(index: u16) -> u32 {
    index as u32 % LANES as u32 * 8
}

/// The word with a one in the byte of each bit that is set.
const fn spread(bits: u8) -> u64 {
    // Each of the eight copies moves one bit to its byte.
    let copies = (bits as u64 * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    let high = ((copies & 0x7f7f_7f7f_7f7f_7f7f) + 0x7f7f_7f7f_7f7f_7f7f) | copies;
    (high >> 7) & 0x0101_0101_0101_0101
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_a_one_in_its_byte() {
        for bits in 0..=u8::MAX {
            let bytes = spread(bits).to_le_bytes();
            for (lane, &byte) in bytes.iter().enumerate() {
                assert_eq!(byte, bits >> lane & 1, "{bits:#b}");
            }
        }
    }
}
