//! Leaf tables that a fork has shared.
//!
//! A fork need not copy the table of 2 MiB of private memory: parent and child share the leaf table
//! and the PV tables, and the entry that leads to them forbids writing on both sides. A space that
//! must change an entry of the table first gets a table of its own; a space that ends just leaves.
//! (The idea is on-demand-fork's, EuroSys 2021.)
//!
//! # The content of a shared table
//! [`Size::Shared`] says that other slots may share a slot's tables. The table's entries are
//! unchanged, except that a page that is known elsewhere has become read-only. Each page has one
//! reference and one PV entry for the table, and each slot of the swap space one reference, however
//! many spaces share it; each member's slot counts the entries as its own. Only slots of private
//! anonymous memory are shared, without locked pages, runs or superpages.
//!
//! # Protocol
//! The slots that have a table are its *family*, which is recorded in the first of its PV
//! tables, under a lock of its own (after slots and PV locks). All tables have one, mostly
//! with one member.
//!
//! - **join** ([`super::fork`]): under the locks of the parent's slot, the child's and the family.
//! - **leave**: under the member's slot lock and then the family's. A member that finds itself
//!   alone under these stays alone: the others cannot come back, and only it can add new ones.
//! - A member that is alone *takes the table over*: the entry that leads to it allows writing
//!   again.
//! - A member that changes an entry *owns* first ([`Pmap::own`]): it copies the table under
//!   its slot's lock, entry by entry, each under its page's PV lock, which keeps that entry
//!   as it is; writes the entry that leads to its own table; flushes the 2 MiB, and then leaves.
//!   From then on the copies are read-only on both sides, and their pages have one more reference
//!   and PV entry. If it finds itself alone only then, it frees the old table and its references.
//! - A member that no longer needs the table ([`Pmap::leave_slots`]: unmap, exec, exit)
//!   clears the entry that leads to the table, flushes, and then leaves: O(1) for 2 MiB.
//! - **removal by the reverse map** ([`super::reverse`]): a task that has a page's PV lock, and
//!   with it an entry of a table, locks the family. If there are several members no other task
//!   changes the entry: it clears the entry, counts one less for each member, and flushes them all;
//!   a member may leave only before or after. If there is one member, it needs that slot's lock, as
//!   usual.
//!
//! So the entries of a shared table are changed under a PV lock and the family's, never
//! under a slot's lock (the right to write is taken from an entry under the PV lock alone: no space
//! can use it anyway). A member that reads one under its slot's lock may see a page that is being
//! removed: it takes the family's lock too ([`Pmap::steady`]), or takes the page's PV lock and
//! looks again.
//!
//! A flush always comes before leaving, so the family names every CPU that may have a page in its
//! TLB: removals from shared tables need no delayed invalidation.
//!
//! # Failures
//! Owning needs a leaf table and its PV tables; it fails before anything has changed. So an
//! unmap, discard, protect, lock or move of a *part* of a shared slot can run out of memory;
//! then the VM reclaims, as in a fault. Whole slots need none.

mod leave;
mod own;

use super::{Entry, Pmap};
use crate::page::PvList;
use crate::pv::{FamilyRef, LockedFamily, Owner};
use crate::system::System;
use crate::tree::{Part, Size};
use machine::{Atomic, Atomics, Ordering};

/// The content of an entry that does not change.
pub(in crate::pmap) enum Kept<'a, S: System> {
    Empty,
    /// The page is in this slot of the swap space, and stays there while the table is shared.
    Swapped(u32),
    /// These bits map a page; except for the walker's marks they stay as long as its list is
    /// locked.
    Page(u64, PvList<'a, S>),
}

impl<S: System> Pmap<S> {
    /// Keeps the entries of the table of `part` unchanged, if it is shared; otherwise the slot's
    /// lock does.
    pub(crate) fn steady(&self, part: &Part<'_, S>) -> Option<LockedFamily<'_, S::Machine>> {
        (part.size() == Size::Shared).then(|| self.family(part).lock())
    }

    /// The content of `entry`, which may be in a shared table.
    pub(in crate::pmap) fn keep(&self, entry: &<S::Machine as Atomics>::AtomicU64) -> Kept<'_, S> {
        loop {
            let bits = entry.load(Ordering::Relaxed);
            let frame = match Entry::decode(bits) {
                Entry::Empty => return Kept::Empty,
                Entry::Swapped(slot) => return Kept::Swapped(slot),
                Entry::Page { frame, .. } => frame,
            };
            let list = self.vm.lock_pv(frame);
            // A page of a shared table may go until its list is locked.
            if Entry::decode(entry.load(Ordering::Relaxed)).maps(frame) {
                return Kept::Page(bits, list);
            }
        }
    }

    /// The family of slots that share the tables of `part`, which has some.
    pub(super) fn family(&self, part: &Part<'_, S>) -> FamilyRef<'_, S::Machine> {
        // SAFETY: the caller has the slot's lock while it uses this, so the tables stay.
        let family = unsafe { part.pv_tables().family(self.vm.machine()) };
        family.expect("a slot with pages has a PV table")
    }

    /// The slot of `part` as a member.
    pub(super) fn member(&self, part: &Part<'_, S>) -> Owner {
        self.owner(part.slot())
    }
}
