//! Kin: slots with a leaf table each that have PV entries in common.
//!
//! # Protocol
//! Members join and leave, and count the pages that they have, by atomic operations on the first of
//! the PV tables, without a lock: all forks of a space, and the exits of the children, come here.
//! (What they do with pages and tables is said in the pmap's module `kin`.)
//!
//! - **join**: take a seat by its bit in `word`; write the owner; then the leaf table (release),
//!   from which on walks see the member.
//! - **leave**: take the leaf table out; if a walk is under way, wait for its end; then give the
//!   seat back. In the one order of all fences the leaver's, between the two, comes before the
//!   walk's, which then finds no leaf table; or after it, and the leaver waits. So a walk may use
//!   the owner that it finds: the member's pmap stays, and nobody else writes the seat.
//! - **walk**: under the family's lock, say so in `word`, and look at the seats with a leaf table.
//! - **counts**: a byte for each entry, eight in a word, at most [`SEATS`]: no carry.

#[cfg(test)]
mod model;

use super::Owner;
use super::Table;
use super::table::ENTRIES;
use core::array;
use machine::{Atomic, AtomicInt, Frame, Machine, Ordering, SharedCell};

/// Members of a family, at most: a removal that finds a page in a leaf table that they share
/// flushes them all.
pub(super) const SEATS: usize = 32;
/// A walk is under way.
const WALK: u64 = 1 << SEATS;
/// The seats that are taken.
const TAKEN: u64 = WALK - 1;
/// Counts in a word.
const LANES: usize = 8;

/// The seats of a family, of which kin know by `word` which are taken, others by the family's lock.
pub(super) struct Seats<M: Machine> {
    /// Protected by the family's lock, or, of kin, as the module says.
    owners: [M::Cell<Owner>; SEATS],
    /// The leaf table of each of kin, as the bits of a [`Table`].
    leaves: [M::AtomicU32; SEATS],
    /// A bit for each seat that one of kin has, and [`WALK`].
    word: M::AtomicU64,
    /// In how many leaf tables of kin each entry's page is mapped.
    counts: [M::AtomicU64; ENTRIES / LANES],
}

impl<M: Machine> Seats<M> {
    /// Of one.
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

    /// Returns true if there is room for a member, a moment ago.
    pub(super) fn have_room(&self) -> bool {
        self.word.load(Ordering::Relaxed) & TAKEN != TAKEN
    }

    /// Returns true if the member in `seat`, whose slot is locked, is the only one.
    pub(super) fn is_alone(&self, seat: u8) -> bool {
        // Relaxed: only it could bring others.
        self.word.load(Ordering::Relaxed) & TAKEN == 1 << seat
    }

    /// Makes a slot with this leaf table a member, if there is room; its seat.
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

    /// Takes the member off that has this seat; whether it was the last.
    pub(super) fn leave(&self, seat: u8) -> bool {
        // Relaxed: the fence orders it.
        self.leaves[usize::from(seat)].store(Table::NONE.to_bits(), Ordering::Relaxed);
        // Pairs with the fence in `begin_walk`.
        M::fence(Ordering::SeqCst);
        // Relaxed: the exchange acquires.
        M::spin_until(|| self.word.load(Ordering::Relaxed) & WALK == 0);
        // AcqRel: with the release in `end_walk`, and the acquire in `join`; and the last sees all
        // that the others did.
        let old = self.word.fetch_and(!(1 << seat), Ordering::AcqRel);
        debug_assert!(old & 1 << seat != 0, "a member leaves twice");
        old & TAKEN == 1 << seat
    }

    /// Begins a walk. Under the family's lock, of kin.
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

    /// The leaf table of the member in `seat`, whose owner the walk may use then.
    pub(super) fn leaf(&self, seat: usize) -> Option<Frame> {
        // Acquire: pairs with the release in `join`.
        Table::from_bits(self.leaves[seat].load(Ordering::Acquire)).get()
    }

    /// In how many leaf tables the page of entry `index` is mapped.
    pub(super) fn count(&self, index: u16) -> u8 {
        // Acquire: pairs with the release in `take`.
        let word = self.counts[usize::from(index) / LANES].load(Ordering::Acquire);
        (word >> shift(index)) as u8
    }

    /// Counts one leaf table more for each of the entries from `first` on, a multiple of 8, whose
    /// bits are set.
    pub(super) fn add(&self, first: u16, bits: u8) {
        // Relaxed: another member, whose slot the caller holds, has the pages.
        let counts = &self.counts[usize::from(first) / LANES];
        let old = counts.fetch_add(spread(bits), Ordering::Relaxed);
        debug_assert!(
            lanes(old, bits).all(|count| usize::from(count) < SEATS),
            "a page is in more leaf tables than there are members"
        );
    }

    /// Counts one less; returns the bits of those that are in none any more.
    pub(super) fn take(&self, first: u16, bits: u8) -> u8 {
        // Release: pairs with the acquire in `count`; and of all who let go with the last, by the
        // acquire here.
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

/// Where the count of entry `index` begins in its word.
const fn shift(index: u16) -> u32 {
    index as u32 % LANES as u32 * 8
}

/// A one in the byte of each bit.
const fn spread(bits: u8) -> u64 {
    // Each bit goes to its byte by one of the eight copies.
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
