//! The pmap's part of a fork: a child shares its parent's private pages.
//!
//! Slot by slot a child gets entries of its own, or its parent's table. Entries become
//! read-only on both sides; the pages are then known to be shared because they have more than one
//! reference. A table is shared by making the entry read-only that leads to it
//! ([`super::shared`]).
//!
//! A fork flushes once at most, at its end ([`super::revocation`]). Until then other CPUs of the
//! parent may still write such a page: the child does not run yet and sees their stores, as they do
//! themselves. An operation that relies on an entry being read-only in the meantime flushes first:
//! `protect_locked` checks for pending revocations, and a copy is only made of a page whose mapping
//! is gone and flushed.
//!
//! Forks of one space copy a slot at the same time, page by page, if they change nothing of the
//! parent's but the right to write ([`Forking::reads`]).

use super::entry::{self, Entry, KIN};
use super::kin::is_kin;
use super::revocation::Revoking;
use super::tables::TABLE;
use super::{Pass, Pmap};
use crate::error::Error;
use crate::flags::Flags;
use crate::pv::{Pages, Table};
use crate::system::{ForkTables, System};
use crate::tree::{Kind, Part, Size};
use machine::{Atomic, Flush, Ordering, PAGE_SIZE, VaRange, pte};

/// A fork under way. It flushes when it ends, also if it fails.
pub(crate) struct Forking<'a, S: System> {
    pmap: &'a Pmap<S>,
    revoking: Revoking<'a, S::Machine>,
    /// The inherited pages of the slot that is being copied, if the child may join its family.
    inherited: Option<Pages>,
    /// True if the child has got entries, or a table, that tasks may write through until a flush.
    shares: bool,
}

impl<S: System> Pmap<S> {
    /// Begins a fork, before the first slot is locked.
    pub(crate) fn fork(&self) -> Forking<'_, S> {
        Forking {
            pmap: self,
            revoking: self.revocations.begin(),
            inherited: None,
            shares: false,
        }
    }
}

impl<S: System> Forking<'_, S> {
    /// Gets tables of its own for the parent's slot of `part`.
    pub(crate) fn own(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        self.pmap.own(part)
    }

    /// Demotes the parent's slot of `part`, so that its pages can be shared one by one.
    pub(crate) fn demote(&self, part: &mut Part<'_, S>) {
        self.pmap.demote(part);
    }

    /// Returns true if the child may share the table of `part`, a whole slot of the parent's.
    pub(crate) fn shares(&self, part: &Part<'_, S>) -> bool {
        let ForkTables::Shared { from } = self.pmap.vm.fork_tables() else {
            return false;
        };
        // A slot that never had a page has no family.
        matches!(part.size(), Size::Pages | Size::Shared)
            && part.slot().count(Kind::Object) == 0
            && part.slot().count(Kind::Private) >= from.max(1)
            && is_inherited(part)
    }

    /// Returns true if this fork changes nothing of `part`, a whole slot of the parent's, but the
    /// right to write.
    pub(crate) fn reads(&self, part: &Part<'_, S>) -> bool {
        part.size() == Size::Pages && !self.shares(part) && !self.pmap.begins_kin(part)
    }

    /// Begins to copy the pages of `part`, a whole slot of the parent's, which is locked
    /// exclusively unless the fork only [reads](Forking::reads) it.
    pub(crate) fn begin_pages(&mut self, part: &mut Part<'_, S>) -> Result<(), Error> {
        debug_assert!(part.is_all(), "a slot is copied as a whole");
        debug_assert!(
            self.inherited.is_none(),
            "a slot is copied before the last is done"
        );
        if self.pmap.begins_kin(part) {
            self.pmap.adopt(part)?;
        }
        let may_join = self.pmap.kin_have_room(part);
        self.inherited = may_join.then_some(Pages::NONE);
        Ok(())
    }

    /// Ends the copy of the pages of `part`: the child has all of them, or, after an error, some.
    pub(crate) fn end_pages(&mut self, part: &Part<'_, S>, child: &Pmap<S>) {
        if let Some(inherited) = self.inherited.take()
            && !inherited.is_none()
            && let Some(kin) = self.pmap.kin(part)
        {
            let to = child.tree.over(part.range()).more().lock();
            let mut to = to.expect("a slot that has pages needs no memory");
            to.parts()
                .for_each(|mut to| child.join_kin(kin, &mut to, &inherited));
        }
    }

    /// Lets the child share the tables of `part`; `to` is the same place in the child, and has no
    /// table. Under the locks of both slots.
    pub(crate) fn share_table(
        &mut self,
        part: &mut Part<'_, S>,
        child: &Pmap<S>,
        to: &mut Part<'_, S>,
    ) -> Result<(), Error> {
        debug_assert!(
            part.is_all() && part.slot_range() == to.slot_range(),
            "a table is of one slot, at one place"
        );
        machine::invariant!(
            S::Machine: to.leaf().get().is_none() && to.is_vacant(),
            "the child has a table already"
        );
        let start = part.slot_range().start;
        let above = child.grow(start, 1)?;
        self.pmap.leave_kin(part);
        self.shares = true;
        while !self.join(part, child, to) {
            // There is no room for more members; in a new family there is.
            self.pmap.own(part)?;
        }
        let leaf = part.leaf().get().expect("a mapping has a table");
        // Release: a walker, or a CPU that looks the table up, finds its entries.
        let entry = leaf.address() | TABLE & !pte::WRITABLE;
        child.entry(above, 1, start).store(entry, Ordering::Release);
        Ok(())
    }

    /// Makes the child's slot `to` a member of the family of `part`, if there is room. Returns true
    /// if there was.
    fn join(&mut self, part: &mut Part<'_, S>, child: &Pmap<S>, to: &mut Part<'_, S>) -> bool {
        let pmap = self.pmap;
        let mut family = pmap.family(part).lock();
        if !family.join(child.member(to)) {
            return false;
        }
        machine::invariant!(
            S::Machine: pmap.kin(part).is_none(),
            "a table of kin's is shared"
        );
        if part.size() != Size::Shared {
            self.revoking
                .revoke(pmap.superpage(part.slot_range().start));
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

    /// Maps the private pages that a slot with this table has in `range` in the child, too, each by
    /// an entry of its own, and makes the parent's entries read-only; `to` is the same place in the
    /// child. An object's pages are left out: the child's faults find them in the object. Under the
    /// locks of both slots.
    pub(crate) fn share(
        &mut self,
        leaf: Table,
        range: VaRange,
        child: &Pmap<S>,
        to: &mut Part<'_, S>,
    ) -> Result<(), Error> {
        let (passes, mut pass) = (self.pmap.vm.passes(), 1);
        let mut are_all = true;
        for (address, bits) in self.pmap.used(leaf, range) {
            let mut to = to.cut(VaRange::sized(address, PAGE_SIZE));
            match entry::kind(bits) {
                Kind::Object => {}
                Kind::Private if is_kin(bits) && self.inherited.is_some() => {
                    self.share_kin(leaf, child, &mut to)?;
                }
                Kind::Private => {
                    are_all &=
                        self.share_page(leaf, bits, child, &mut to, Pass::number(pass, passes))?;
                }
                Kind::Swapped => {
                    child.prepare_leaf(&mut to)?;
                    if let Entry::Swapped(slot) = Entry::decode(bits) {
                        self.pmap.vm.retain_swapped(slot);
                    }
                    child.write(&mut to, bits);
                }
            }
        }
        while !are_all {
            pass += 1;
            are_all = self.share_rest(leaf, range, child, to, Pass::number(pass, passes))?;
        }
        Ok(())
    }

    /// Shares the inherited page that the parent has at the start of `to`.
    fn share_kin(
        &mut self,
        leaf: Table,
        child: &Pmap<S>,
        to: &mut Part<'_, S>,
    ) -> Result<(), Error> {
        child.prepare(to)?;
        self.shares = true;
        let bits = self.write_protect(leaf, to.range().start);
        debug_assert!(is_kin(bits), "the parent's page has ceased to be kin's");
        child.write(to, bits & !(pte::DIRTY | pte::ACCESSED));
        let inherited = self.inherited.as_mut().expect("the child is to be kin");
        inherited.add(to.range().start);
        Ok(())
    }

    /// Shares the private pages of `range` that the child does not have yet, without those whose
    /// lists are locked, unless the `pass` waits. Returns true if none is left.
    #[cold]
    fn share_rest(
        &mut self,
        leaf: Table,
        range: VaRange,
        child: &Pmap<S>,
        to: &mut Part<'_, S>,
        pass: Pass,
    ) -> Result<bool, Error> {
        let mut are_all = true;
        for (address, bits) in self.pmap.used(leaf, range) {
            let mut to = to.cut(VaRange::sized(address, PAGE_SIZE));
            if entry::kind(bits) == Kind::Private && child.entry_at(&to) == Entry::Empty {
                are_all &= self.share_page(leaf, bits, child, &mut to, pass)?;
            }
        }
        Ok(are_all)
    }

    /// Shares the private page that the parent has at the start of `to`, in an entry of these
    /// `bits`, unless its list is locked and the `pass` does not wait. Returns true if it did.
    #[inline]
    fn share_page(
        &mut self,
        leaf: Table,
        bits: u64,
        child: &Pmap<S>,
        to: &mut Part<'_, S>,
        pass: Pass,
    ) -> Result<bool, Error> {
        child.prepare(to)?;
        let vm = &self.pmap.vm;
        let list = match pass {
            Pass::Waits => Some(vm.lock_pv(pte::frame(bits))),
            Pass::Tries => vm.try_lock_pv(pte::frame(bits)),
        };
        let Some(list) = list else {
            return Ok(false);
        };
        self.shares = true;
        let seen = pte::frame(bits);
        let bits = self.write_protect(leaf, to.range().start);
        debug_assert!(
            pte::frame(bits) == seen,
            "the parent's page changed under its slot's lock"
        );
        debug_assert!(bits & pte::WRITABLE == 0, "the parent may write the page");
        vm.page(pte::frame(bits)).retain();
        child.link_to(list, to, bits & !(pte::DIRTY | pte::ACCESSED | KIN));
        Ok(true)
    }

    /// Makes the parent's entry at `address` read-only; returns it. Flushes nothing.
    fn write_protect(&mut self, leaf: Table, address: usize) -> u64 {
        let leaf = leaf.get().expect("a mapping has a table");
        self.revoking.revoke(self.pmap.entry(leaf, 0, address))
    }
}

impl<S: System> Drop for Forking<'_, S> {
    fn drop(&mut self) {
        if self.shares {
            let pmap = self.pmap;
            self.revoking.end(|| pmap.flush(Flush::All));
        }
    }
}

/// Returns true if all that is mapped in `part` is private anonymous memory that a child inherits
/// unchanged.
fn is_inherited<S: System>(part: &Part<'_, S>) -> bool {
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
