//! Making a mapping.

use super::entry::{self, Entry, USED};
use super::{Pmap, Table};
use crate::error::Error;
use crate::frames::Content;
use crate::policy::{Invalidation, MapLocking, Policies, PvChunks};
use crate::prot::Prot;
use crate::tree::{Kind, Part, Size};
use core::iter;
use machine::{Atomic, Frame, Ordering, PAGE_SIZE, Platform, VaRange, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Maps the page in `frame` at `address`, and takes a reference to it. The caller
    /// has one too.
    ///
    /// `Ok(false)` if a page is mapped there already; nothing changes then. After an
    /// error nothing has changed either.
    ///
    /// # Panics
    /// If `address` is no user address.
    pub fn enter(&self, address: usize, frame: Frame, prot: Prot) -> Result<bool, Error> {
        let _enter = self.vm.invalidation().enter();
        let _pmap = self.locking.pmap();
        let mut locked = self.tree.lock(page_at(address))?;
        let mut part = locked.parts().next().expect("a page is a part");
        if self.entry_at(&part) != Entry::Empty {
            return Ok(false);
        }
        self.split(&mut part);
        self.prepare(&mut part)?;
        self.vm.page(frame).retain();
        self.make(&mut part, frame, Kind::Private, prot, prot.writes());
        Ok(true)
    }

    /// Does all that can fail before a mapping is made at the start of `part`: gets the leaf
    /// table, and the PV table of the page's MiB. They stay if there is no mapping after all.
    #[inline]
    pub(crate) fn prepare(&self, part: &mut Part<'_, M, P>) -> Result<(), Error> {
        self.own(part)?;
        if self.vm.pv_chunks().is_used() {
            return self.prepare_entry(part);
        }
        let address = part.range().start;
        match part.inside().pv.entry(address) {
            Some(_) => Ok(()),
            None => self.add_pv_table(part),
        }
    }

    /// Gets the leaf table of `part`'s slot.
    pub(super) fn prepare_leaf(&self, part: &mut Part<'_, M, P>) -> Result<Frame, Error> {
        self.own(part)?;
        if let Some(leaf) = part.leaf().get() {
            return Ok(leaf);
        }
        let leaf = self.grow(part.range().start, 0)?;
        part.inside().leaf = Table::of(leaf);
        Ok(leaf)
    }

    /// Gives the slot of `part` the PV table of the start's MiB, and a leaf table if it has
    /// none.
    #[cold]
    fn add_pv_table(&self, part: &mut Part<'_, M, P>) -> Result<(), Error> {
        let (machine, address) = (self.vm.machine(), part.range().start);
        let table = self.vm.allocate(Content::Any)?;
        let leaf = self.prepare_leaf(part);
        let leaf = leaf.inspect_err(|_| self.vm.free(table, false))?;
        M::label(
            machine.direct_map(table).as_ptr().cast(),
            PAGE_SIZE,
            "PV table",
        );
        let owner = self.owner(part.slot());
        // SAFETY: the frame is fresh, and the slot's lock is held.
        unsafe { part.inside().pv.add(machine, table, address, owner, leaf) };
        Ok(())
    }

    /// Frees the PV tables of `part`'s slot, which has no page mapped.
    pub(super) fn free_pv_tables(&self, part: &mut Part<'_, M, P>) {
        debug_assert_eq!(part.slot().resident(), 0);
        for table in part.inside().pv.take() {
            self.vm.free(table, false);
        }
    }

    /// Maps the page in `frame` at the start of `part`, where nothing is mapped. It is
    /// prepared; the caller's reference to the page becomes the mapping's.
    pub(crate) fn make(
        &self,
        part: &mut Part<'_, M, P>,
        frame: Frame,
        kind: Kind,
        prot: Prot,
        writable: bool,
    ) {
        self.link(part, entry::page(frame, kind, prot, writable));
    }

    /// As [`Pmap::make`] with an object's page, unless `holds` denies it when the mapping is on
    /// the page's list and not in the table yet; whether it was made. If not, the reference is
    /// the caller's.
    pub(crate) fn make_if(
        &self,
        part: &mut Part<'_, M, P>,
        frame: Frame,
        (prot, writable): (Prot, bool),
        holds: impl FnOnce(&Part<'_, M, P>) -> bool,
    ) -> bool {
        let address = part.range().start;
        self.list(&mut self.vm.lock_pv(frame), part, address);
        if holds(part) {
            self.write(part, entry::page(frame, Kind::Object, prot, writable));
            return true;
        }
        // SAFETY: inserted above, and who removes it otherwise locks the slot, which is held.
        unsafe { self.unlist(&mut self.vm.lock_pv(frame), part, address) };
        false
    }

    /// Maps the page that `bits` names at the start of `part`, where nothing is mapped. It is
    /// prepared; the caller's reference to the page becomes the mapping's.
    pub(super) fn link(&self, part: &mut Part<'_, M, P>, bits: u64) {
        let mut list = self.vm.lock_pv(pte::frame(bits));
        self.list(&mut list, part, part.range().start);
        drop(list);
        self.write(part, bits);
    }

    /// Writes the entry at the start of `part`, which is empty.
    pub(super) fn write(&self, part: &mut Part<'_, M, P>, bits: u64) {
        let leaf = part.leaf().get().expect("a mapping has a table");
        let entry = self.entry(leaf, 0, part.range().start);
        debug_assert_eq!(entry.load(Ordering::Relaxed), 0);
        debug_assert!(part.size() != Size::Shared);
        // Release: a walker that finds the page finds its content.
        entry.store(bits, Ordering::Release);
        part.add(entry::kind(bits), 1);
        self.count_resident(isize::from(bits & pte::PRESENT != 0));
    }

    /// The page mapped at `address`, if any.
    pub fn lookup(&self, address: usize) -> Option<Frame> {
        let _pmap = self.locking.pmap();
        let place = self.tree.find(address);
        if place.level > 0 {
            return None;
        }
        let mut locked = self.tree.lock_small(place, page_at(address));
        let part = locked.parts().next()?;
        match self.entry_at(&part) {
            Entry::Page { frame, .. } => Some(frame),
            Entry::Empty | Entry::Swapped(_) => None,
        }
    }

    /// The first address of `range`, which is one slot's with this leaf table, that has an
    /// entry; and the entry.
    fn next_used(&self, leaf: Table, range: VaRange) -> Option<(usize, u64)> {
        let leaf = leaf.get()?;
        if range.start >= range.end {
            return None;
        }
        let first = pte::index(range.start, 0);
        let past = first + range.pages();
        let found = self.vm.machine().find_word(leaf, first, past, USED);
        found.map(|(index, bits)| (range.start + (index - first) * PAGE_SIZE, bits))
    }

    /// The entries of `range`, which is one slot's with this leaf table, in order.
    pub(super) fn used(
        &self,
        leaf: Table,
        mut range: VaRange,
    ) -> impl Iterator<Item = (usize, u64)> + use<'_, M, P> {
        iter::from_fn(move || {
            let found = self.next_used(leaf, range)?;
            range.start = found.0 + PAGE_SIZE;
            Some(found)
        })
    }
}

/// The page that `address` lies in.
fn page_at(address: usize) -> VaRange {
    VaRange::sized(address & !(PAGE_SIZE - 1), PAGE_SIZE)
}
