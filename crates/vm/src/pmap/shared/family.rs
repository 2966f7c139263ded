//! Who has a leaf table.

use crate::pmap::Pmap;
use crate::policy::Policies;
use crate::tree::Slot;
use core::slice;
use machine::Platform;

/// Slots that share a leaf table, at most: whoever finds a page in it flushes them all.
const MEMBERS: usize = 32;

/// A slot, and the pmap that it is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The pmap, in whose `Arc` the slot lives.
    pub(crate) pmap: *const (),
    /// The slot, of level 0. It stays where it is while the pmap lives.
    pub(crate) slot: *const (),
}

impl Owner {
    /// The pmap and the slot.
    ///
    /// # Safety
    /// It is a member of a family, and stays one, or keeps its pmap otherwise, while they are used.
    pub(in crate::pmap) unsafe fn get<'a, M: Platform, P: Policies<M>>(
        self,
    ) -> (&'a Pmap<M, P>, &'a Slot<M, P>) {
        // SAFETY: a pmap outlives its membership, and its slots live as long.
        unsafe { (&*self.pmap.cast(), &*self.slot.cast()) }
    }
}

/// The slots that have a leaf table and its PV tables: at least one, in no order.
pub(crate) struct Family {
    members: [Owner; MEMBERS],
    count: usize,
}

// SAFETY: plain pointers; the protocol says who may follow them.
unsafe impl Send for Family {}

impl Family {
    /// Of one.
    pub(in crate::pmap) const fn of(owner: Owner) -> Self {
        Family {
            members: [owner; MEMBERS],
            count: 1,
        }
    }

    /// The only member, if there is only one.
    pub(in crate::pmap) const fn alone(&self) -> Option<Owner> {
        match self.count {
            1 => Some(self.members[0]),
            _ => None,
        }
    }

    /// All members.
    pub(in crate::pmap) fn members(&self) -> slice::Iter<'_, Owner> {
        self.members[..self.count].iter()
    }

    /// Adds a member, if there is room.
    #[must_use]
    pub(super) fn join(&mut self, owner: Owner) -> bool {
        let room = self.count < MEMBERS;
        if room {
            self.members[self.count] = owner;
            self.count += 1;
        }
        room
    }

    /// Takes a member off that is not alone.
    pub(super) fn leave(&mut self, owner: Owner) {
        debug_assert!(self.count > 1);
        let at = self.members().position(|&member| member == owner);
        let at = at.expect("a slot that shares a table is of its family");
        self.count -= 1;
        self.members[at] = self.members[self.count];
    }
}
