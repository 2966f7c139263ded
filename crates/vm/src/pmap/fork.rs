//! Fork's half of the pmap: a child shares its parent's private pages.
//!
//! Slot by slot a child gets entries of its own, or its parent's table. Entries become
//! read-only on both sides; the pages are then known to be shared because they have more than one
//! reference. A table is shared by making the entry read-only that leads to it
//! ([`super::shared`]).
//!
//! A fork flushes once, at its end. Until then other CPUs of the parent may still write such a
//! page: the child does not run yet and sees their stores, as they do themselves. An operation
//! that relies on an entry being read-only in the meantime flushes first: `protect_locked` asks
//! [`Pmap::is_forking`], and a copy is only made of a page whose mapping is gone and
//! flushed.

use super::Pmap;
use super::entry::{self, Entry};
use super::tables::TABLE;
use crate::error::Error;
use crate::flags::Flags;
use crate::policy::{ForkTables, Policies};
use crate::pv::Table;
use crate::tree::{Kind, Part, Size};
use machine::{Atomic, AtomicInt, Flush, Ordering, PAGE_SIZE, Platform, VaRange, pte};

/// A fork under way. The flush is due when it ends, also if it fails.
pub(crate) struct Forking<'a, M: Platform, P: Policies<M>> {
    pmap: &'a Pmap<M, P>,
    /// Whether the child has got entries, or a table, that tasks may write through until the flush: without
    /// any there is none. (What counts is not who made them read-only. If that was another fork under way,
    /// this one must not end before a flush either.)
    shares: bool,
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Begins a fork, before the first slot is locked.
    pub(crate) fn fork(&self) -> Forking<'_, M, P> {
        // Relaxed: the slots' locks order it before the reads that others make under them.
        self.forks.fetch_add(1, Ordering::Relaxed);
        Forking {
            pmap: self,
            shares: false,
        }
    }

    /// Whether TLBs may know entries as writable that a fork has made read-only. Under
    /// the lock of their slots.
    pub(super) fn is_forking(&self) -> bool {
        // Acquire: pairs with the release of the fork that has flushed.
        self.forks.load(Ordering::Acquire) != 0
    }
}

impl<M: Platform, P: Policies<M>> Forking<'_, M, P> {
    /// Gets tables of its own for the parent's slot of `part`.
    pub(crate) fn own(&self, part: &mut Part<'_, M, P>) -> Result<(), Error> {
        self.pmap.own(part)
    }

    /// Makes the parent's slot of `part` one whose pages can be shared one by one.
    pub(crate) fn demote(&self, part: &mut Part<'_, M, P>) {
        self.pmap.demote(part);
    }

    /// Whether the child may have the table of `part`, all of a slot of the parent's.
    pub(crate) fn shares(&self, part: &Part<'_, M, P>) -> bool {
        let ForkTables::Shared { from } = self.pmap.vm.fork_tables() else {
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
        &mut self,
        part: &mut Part<'_, M, P>,
        child: &Pmap<M, P>,
        to: &mut Part<'_, M, P>,
    ) -> Result<(), Error> {
        let start = part.slot_range().start;
        let above = child.grow(start, 1)?;
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

    /// Makes `to`, of the child's, a member of the family of `part`, if there is room.
    fn join(&self, part: &mut Part<'_, M, P>, child: &Pmap<M, P>, to: &mut Part<'_, M, P>) -> bool {
        let mut family = self.pmap.family(part).lock();
        if !family.join(child.member(to)) {
            return false;
        }
        if part.size() != Size::Shared {
            // AcqRel: as where entries are removed. The fork flushes at its end.
            let leads = self.pmap.superpage(part.slot_range().start);
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

    /// Gives the child, whose `to` is the same place, the private pages that a slot with
    /// this table has at `range`, each with an entry of its own, and ceases to write them alone. An
    /// object's pages stay away: the child finds them where the parent did. Under the locks of both
    /// slots.
    pub(crate) fn share(
        &mut self,
        leaf: Table,
        range: VaRange,
        child: &Pmap<M, P>,
        to: &mut Part<'_, M, P>,
    ) -> Result<(), Error> {
        for (address, bits) in self.pmap.used(leaf, range) {
            let mut to = to.cut(VaRange::sized(address, PAGE_SIZE));
            match entry::kind(bits) {
                Kind::Object => {}
                Kind::Private => {
                    child.prepare(&mut to)?;
                    self.shares = true;
                    let bits = self.write_protect(leaf, address);
                    self.pmap.vm.page(pte::frame(bits)).retain();
                    child.link(&mut to, bits & !(pte::DIRTY | pte::ACCESSED));
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
        Ok(())
    }

    /// Makes the parent's entry at `address` read-only; returns it. Flushes nothing.
    fn write_protect(&self, leaf: Table, address: usize) -> u64 {
        let leaf = leaf.get().expect("a mapping has a table");
        let entry = self.pmap.entry(leaf, 0, address);
        // AcqRel: the walker may set accessed and dirty, as in `clear`.
        entry.fetch_and(!pte::WRITABLE, Ordering::AcqRel) & !pte::WRITABLE
    }
}

impl<M: Platform, P: Policies<M>> Drop for Forking<'_, M, P> {
    fn drop(&mut self) {
        if self.shares {
            self.pmap.flush(Flush::All);
        }
        // Release: an operation that finds no fork finds it flushed. Pairs with `is_forking`.
        self.pmap.forks.fetch_sub(1, Ordering::Release);
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
