//! The slots that have a leaf table.

use core::slice;

/// Slots that share a leaf table, at most: a removal that finds a page in it flushes them all.
const MEMBERS: usize = 32;

/// A slot, and the pmap that it is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The pmap, in whose `Arc` the slot lives.
    pub(crate) pmap: *const (),
    /// The slot, of level 0. It stays where it is while the pmap lives.
    pub(crate) slot: *const (),
}

/// The slots that have a leaf table and its PV tables: at least one, in no order.
pub(crate) struct Family {
    members: [Owner; MEMBERS],
    count: usize,
}

// SAFETY: plain pointers; only a caller that keeps a member's pmap follows them (`Owner::get`).
unsafe impl Send for Family {}

impl Family {
    /// Of one.
    pub(crate) const fn of(owner: Owner) -> Self {
        Family {
            members: [owner; MEMBERS],
            count: 1,
        }
    }

    /// The only member, if there is only one.
    pub(crate) const fn alone(&self) -> Option<Owner> {
        match self.count {
            1 => Some(self.members[0]),
            _ => None,
        }
    }

    /// All members.
    pub(crate) fn members(&self) -> slice::Iter<'_, Owner> {
        self.members[..self.count].iter()
    }

    /// Adds a member, if there is room.
    #[must_use]
    pub(crate) fn join(&mut self, owner: Owner) -> bool {
        let room = self.count < MEMBERS;
        if room {
            self.members[self.count] = owner;
            self.count += 1;
        }
        room
    }

    /// Takes a member off that is not alone.
    pub(crate) fn leave(&mut self, owner: Owner) {
        debug_assert!(self.count > 1);
        let at = self.members().position(|&member| member == owner);
        let at = at.expect("a slot that shares a table is of its family");
        self.count -= 1;
        self.members[at] = self.members[self.count];
    }
}
