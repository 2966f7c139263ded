//! The slots that have PV tables.

use super::kin::{SEATS, Seats};
use crate::lock::{FamilyGuard, FamilyLock};
use machine::{Frame, Machine};

/// A slot and its pmap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The pmap, in whose `Arc` the slot lives.
    pub(crate) pmap: *const (),
    /// The slot, of level 0. It stays where it is while the pmap lives.
    pub(crate) slot: *const (),
}

// SAFETY: plain pointers; only a caller that keeps the member's pmap follows them (`Owner::get`).
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

/// The slots that share PV tables, at least one. They share a leaf table, or are *kin*, each with
/// its own (the pmap's modules `shared` and `kin`). Says which of the [`Seats`] are taken.
pub(crate) struct Family {
    /// A bit for each seat that a member has taken.
    taken: u32,
    are_kin: bool,
}

const _: () = assert!(SEATS == u32::BITS as usize);

impl Family {
    /// A family with one member.
    pub(super) const ONE: Self = Family {
        taken: 1,
        are_kin: false,
    };
}

/// A family, to be locked.
pub(crate) struct FamilyRef<'m, M: Machine> {
    pub(super) lock: &'m FamilyLock<M, Family>,
    pub(super) seats: &'m Seats<M>,
}

/// A family, locked.
pub(crate) struct LockedFamily<'m, M: Machine> {
    family: FamilyGuard<'m, M, Family>,
    seats: &'m Seats<M>,
}

impl<'m, M: Machine> FamilyRef<'m, M> {
    #[track_caller]
    #[inline]
    pub(crate) fn lock(self) -> LockedFamily<'m, M> {
        let FamilyRef { lock, seats } = self;
        let family = lock.lock();
        if family.are_kin {
            seats.begin_walk();
        }
        LockedFamily { family, seats }
    }
}

impl<M: Machine> LockedFamily<'_, M> {
    /// Makes the only member, which has this leaf table, the first of kin, and returns its seat.
    pub(crate) fn become_kin(mut self, leaf: Frame) -> u8 {
        machine::invariant!(M: !self.family.are_kin, "a family becomes kin twice");
        machine::invariant!(M: self.count() == 1, "a table of several slots becomes the kin's");
        let seat = self.family.taken.trailing_zeros() as u8;
        self.seats.begin(seat, leaf);
        self.family.are_kin = true;
        // The drop ends a walk that has not begun, which changes nothing.
        seat
    }

    /// Returns true if each member has a leaf table of its own.
    pub(crate) fn are_kin(&self) -> bool {
        self.family.are_kin
    }

    /// The number of members, which are no kin.
    pub(crate) fn count(&self) -> usize {
        machine::invariant!(M: !self.family.are_kin, "kin are known by their leaf tables");
        machine::invariant!(M: self.family.taken != 0, "a family without a member");
        self.family.taken.count_ones() as usize
    }

    /// The only member, if there is only one, whose leaf table the PV tables name.
    pub(crate) fn alone(&self) -> Option<Owner> {
        let Family { taken, are_kin } = *self.family;
        (taken.is_power_of_two() && !are_kin).then(|| self.owner(taken.trailing_zeros() as usize))
    }

    /// All members, which are no kin.
    pub(crate) fn members(&self) -> impl Iterator<Item = Owner> {
        machine::invariant!(M: !self.family.are_kin, "kin are known by their leaf tables");
        self.taken().map(|seat| self.owner(seat))
    }

    /// The members of kin, with their leaf tables.
    pub(crate) fn kin(&self) -> impl Iterator<Item = (Owner, Frame)> {
        machine::invariant!(M: self.family.are_kin, "no walk over kin is under way");
        let of = |seat| Some((seat, self.seats.leaf(seat)?));
        let seats = (0..SEATS).filter_map(of);
        seats.map(|(seat, leaf)| (self.owner(seat), leaf))
    }

    /// Adds a member to a family that is no kin, if there is room. Returns true if there was.
    #[must_use]
    pub(crate) fn join(&mut self, owner: Owner) -> bool {
        machine::invariant!(M: !self.family.are_kin, "kin take their seats by themselves");
        machine::invariant!(
            M: self.taken().all(|seat| self.owner(seat) != owner),
            "a slot joins its family twice"
        );
        let seat = self.family.taken.trailing_ones() as usize;
        let has_room = seat < SEATS;
        if has_room {
            // SAFETY: the family is locked.
            unsafe { self.seats.set_owner(seat, owner) };
            self.family.taken |= 1 << seat;
        }
        has_room
    }

    /// Removes a member that is not alone from a family that is no kin.
    pub(crate) fn leave(&mut self, owner: Owner) {
        machine::invariant!(M: self.count() > 1, "the last member leaves a table behind");
        let seat = self.taken().find(|&seat| self.owner(seat) == owner);
        let seat = seat.expect("a slot that shares a table is of its family");
        self.family.taken &= !(1 << seat);
    }

    /// The seats that members have taken.
    fn taken(&self) -> impl Iterator<Item = usize> + use<M> {
        let taken = self.family.taken;
        (0..SEATS).filter(move |seat| taken & 1 << seat != 0)
    }

    fn owner(&self, seat: usize) -> Owner {
        // SAFETY: the family is locked; for kin a walk is under way, and the seat has a leaf table.
        unsafe { self.seats.owner(seat) }
    }
}

impl<M: Machine> Drop for LockedFamily<'_, M> {
    fn drop(&mut self) {
        if self.family.are_kin {
            self.seats.end_walk();
        }
    }
}
