//! Joining.

use super::super::Forking;
use super::super::tables::TABLE;
use crate::error::Error;
use crate::pmap::Pmap;
use crate::policy::{ForkTables, Policies};
use crate::tree::{Flags, Kind, Part, Size};
use machine::{Atomic, AtomicInt, Ordering, Platform, pte};

impl<M: Platform, P: Policies<M>> Forking<'_, M, P> {
    /// Whether the child may have the table of `part`, all of a slot of the parent's.
    pub(crate) fn shares(&self, part: &Part<'_, M, P>) -> bool {
        let ForkTables::Shared { from } = self.parent().vm.fork_tables() else {
            return false;
        };
        // A slot that never had a page has no family.
        matches!(part.size(), Size::Pages | Size::Shared)
            && part.slot().count(Kind::Object) == 0
            && part.slot().count(Kind::Private) >= from.max(1)
            && is_inherited(part)
    }

    /// Gives the child, whose `to` is the same place and has no table, the tables of `part`. Under
    /// the locks of both slots.
    pub(crate) fn share_table(
        &self,
        part: &mut Part<'_, M, P>,
        child: &Pmap<M, P>,
        to: &mut Part<'_, M, P>,
    ) -> Result<(), Error> {
        let (parent, start) = (self.parent(), part.slot_range().start);
        let above = child.grow(start, 1)?;
        while !parent.join(part, child, to) {
            // There is no room for more members; in a new family there is.
            parent.own(part)?;
        }
        let leaf = part.leaf().get().expect("a mapping has a table");
        // Release: who finds the table, the walker too, finds its entries.
        let entry = leaf.address() | TABLE & !pte::WRITABLE;
        child.entry(above, 1, start).store(entry, Ordering::Release);
        Ok(())
    }
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Makes `to`, of the child's, a member of the family of `part`, if there is room.
    fn join(&self, part: &mut Part<'_, M, P>, child: &Pmap<M, P>, to: &mut Part<'_, M, P>) -> bool {
        let mut family = self.family(part).lock();
        if !family.join(child.member(to)) {
            return false;
        }
        if part.size() != Size::Shared {
            // AcqRel: as where entries are removed. The fork flushes at its end.
            let leads = self.superpage(part.slot_range().start);
            leads.fetch_and(!pte::WRITABLE, Ordering::AcqRel);
            part.set_size(Size::Shared);
        }
        (to.inside().leaf, to.inside().pv) = (part.leaf(), part.pv_tables());
        to.set_size(Size::Shared);
        let private = part.slot().count(Kind::Private);
        let swapped = part.slot().count(Kind::Swapped);
        to.slot().set_counts(private, swapped);
        child.count_resident(private as isize);
        true
    }
}

/// Whether all that is mapped in `part` is private anonymous memory that a child finds as it is.
fn is_inherited<M: Platform, P: Policies<M>>(part: &Part<'_, M, P>) -> bool {
    let others = [
        Flags::SHARED,
        Flags::DONT_FORK,
        Flags::WIPE_ON_FORK,
        Flags::LOCKED,
    ];
    let mut inherited = true;
    part.for_each(|mapped| {
        inherited &= mapped.attachment.is_none();
        inherited &= !others.iter().any(|&flag| mapped.flags.has(flag));
    });
    inherited
}
