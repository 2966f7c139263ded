//! Making a mapping, putting a copy in its place, and taking a single one away.

use super::Pmap;
use super::entry::{self, Entry};
use super::kin::is_kin;
use crate::error::Error;
use crate::flags::Flags;
use crate::frames::Content;
use crate::page::PvList;
use crate::prot::Prot;
use crate::pv::{Pv, PvHead, Table};
use crate::system::{Invalidation, System};
use crate::tree::{Kind, Mapped, Part, Size};
use crate::vm::Hold;
use core::ptr;
use machine::{Atomic, Atomics, Frame, Memory, Ordering, PAGE_SIZE, VaRange, pte};

impl<S: System> Pmap<S> {
    /// Maps the page at `address`, and takes a reference to it. In a space's pmap, private
    /// anonymous memory must be mapped there with these rights, or with these and that to write.
    ///
    /// Returns `Ok(false)` if a page is mapped there already. Then, and after an error, nothing has
    /// changed.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the page is another VM's, `address` is no page of tasks, or the space
    /// has no such memory there; [`Error::OutOfMemory`].
    pub fn enter(&self, address: usize, page: &Hold<S>, prot: Prot) -> Result<bool, Error> {
        let invalid = |reason| Err(Error::Invalid { reason });
        if !page.is_of(&self.vm) {
            return invalid("the page is another VM's");
        }
        if !address.is_multiple_of(PAGE_SIZE) || address >= pte::USER_END {
            return invalid("the address is not of a task's page");
        }
        let frame = page.frame();
        let _enter = self.vm.invalidation().enter();
        let _pmap = self.lock_tables();
        let mut locked = self.tree.over(VaRange::page(address)).lock()?;
        let mut part = locked.parts().next().expect("a page is a part");
        let fits = |at: Mapped<'_, S>| {
            let is_private = !at.flags.has(Flags::SHARED) && at.attachment.is_none();
            let rights = at.flags.prot();
            // A fault can give a page the right to write, and no other.
            is_private && (prot == rights || prot == rights.read_only())
        };
        if !self.is_bare && !part.first().is_some_and(fits) {
            return invalid("the space has no private memory with these rights there");
        }
        if self.entry_at(&part) != Entry::Empty {
            return Ok(false);
        }
        self.split(&mut part);
        self.prepare(&mut part)?;
        self.vm.page(frame).retain();
        self.make(&mut part, frame, Kind::Private, prot);
        Ok(true)
    }

    /// Prepares a mapping at the start of `part`, so that making it cannot fail: gets the leaf
    /// table, and the PV table of the page's MiB. They stay if no mapping follows.
    #[inline]
    pub(crate) fn prepare(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        self.own(part)?;
        if let Some(chunks) = self.chunks() {
            return chunks.prepare(&mut part.cut(part.range()));
        }
        let address = part.range().start;
        match part.inside().pv.entry(address) {
            Some(_) => Ok(()),
            None => self.add_pv_table(&mut part.cut(part.range())),
        }
    }

    /// Gets the leaf table of `part`'s slot.
    pub(super) fn prepare_leaf(&self, part: &mut Part<'_, S>) -> Result<Frame, Error> {
        self.own(part)?;
        if let Some(leaf) = part.leaf().get() {
            return Ok(leaf);
        }
        machine::invariant!(
            S::Machine: part.slot().entries() == 0,
            "a slot has entries and no table"
        );
        let leaf = self.grow(part.range().start, 0)?;
        part.inside().leaf = Table::of(leaf);
        Ok(leaf)
    }

    /// Gives the slot of `part` the PV table of the start's MiB, and a leaf table if it has
    /// none.
    #[cold]
    fn add_pv_table(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        let (machine, address) = (self.vm.machine(), part.range().start);
        let table = self.vm.allocate(Content::Any)?;
        let leaf = self.prepare_leaf(part);
        let leaf = leaf.inspect_err(|_| self.vm.free(table, Content::Any))?;
        S::Machine::label(
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
    pub(super) fn free_pv_tables(&self, part: &mut Part<'_, S>) {
        machine::invariant!(
            S::Machine: part.slot().resident() == 0,
            "PV tables are freed that list pages"
        );
        machine::invariant!(
            S::Machine: part.size() != Size::Shared || part.pv_tables().is_none(),
            "PV tables are freed that others may have"
        );
        if let Some(kin) = self.kin(part) {
            self.quit(part, kin);
        }
        for table in part.inside().pv.take() {
            self.vm.free(table, Content::Any);
        }
    }

    /// Maps the page in `frame` at the start of `part`, which is prepared, and where nothing is
    /// mapped. The caller's reference to the page becomes the mapping's.
    #[inline]
    pub(crate) fn make(&self, part: &mut Part<'_, S>, frame: Frame, kind: Kind, rights: Prot) {
        self.link(part, entry::page(frame, kind, rights));
    }

    /// Maps a private page that no other task knows yet: its first reference is the mapping's.
    #[inline]
    pub(crate) fn make_first(&self, part: &mut Part<'_, S>, frame: Frame, prot: Prot) {
        machine::invariant!(
            S::Machine: self.vm.page(frame).references() == 0,
            "a page begins that tasks know"
        );
        let bits = entry::page(frame, Kind::Private, prot);
        if self.vm.has_short_paths() {
            self.begin_listed(frame, part.pv(part.range().start));
            return self.write(part, bits);
        }
        self.vm.page(frame).begin();
        self.link(part, bits);
    }

    /// Maps a new private page of the slot, if nothing is mapped there and the mapping is prepared
    /// already; returns true if it was made. Only called where all parts are silent
    /// ([`crate::system::Part::is_silent`]).
    ///
    /// [`Pmap::make_first`] would do, but a first touch would take 6 % more instructions.
    #[inline]
    pub(crate) fn make_at_once(&self, part: &mut Part<'_, S>, frame: Frame, prot: Prot) -> bool {
        debug_assert!(
            self.vm.has_short_paths(),
            "a part must be told of this touch"
        );
        let address = part.range().start;
        let (Some(leaf), Some(pv)) = (part.leaf().get(), part.pv_tables().entry(address)) else {
            return false;
        };
        let entry = self.entry(leaf, 0, address);
        if part.size() != Size::Pages || entry.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.begin_listed(frame, pv);
        // Release: as in `Pmap::write`.
        let bits = entry::page(frame, Kind::Private, prot);
        entry.store(bits, Ordering::Release);
        part.add(Kind::Private, 1);
        true
    }

    /// Begins the page in `frame`, which no other task knows, with the entry `pv`, of a slot that
    /// is locked.
    #[inline]
    fn begin_listed(&self, frame: Frame, pv: Pv) {
        // SAFETY: nothing is mapped at the address of `pv`, so it is on no list; its slot is
        // locked.
        let list = unsafe { PvHead::only(self.vm.machine(), pv) };
        self.vm.page(frame).begin_with(list);
    }

    /// Maps an object's page, unless `holds` denies it when the mapping is on the page's list and
    /// not in the table yet; returns true if it was made. If not, the reference is the caller's.
    pub(crate) fn make_if(
        &self,
        part: &mut Part<'_, S>,
        frame: Frame,
        rights: Prot,
        holds: impl FnOnce(&Part<'_, S>) -> bool,
    ) -> bool {
        debug_assert!(
            self.vm.lists_objects(),
            "mappings of objects are on no list"
        );
        let address = part.range().start;
        self.list(&mut self.vm.lock_pv(frame), part, address);
        if holds(part) {
            self.write(part, entry::page(frame, Kind::Object, rights));
            return true;
        }
        // SAFETY: inserted above, and any other removal locks the slot, which is held.
        unsafe { self.unlist(&mut self.vm.lock_pv(frame), part, address) };
        false
    }

    /// Maps the page that `bits` names at the start of `part`, which is prepared, and where nothing
    /// is mapped. The caller's reference to the page becomes the mapping's.
    #[inline]
    pub(super) fn link(&self, part: &mut Part<'_, S>, bits: u64) {
        self.link_to(self.vm.lock_pv(pte::frame(bits)), part, bits);
    }

    /// Maps the page that `bits` names at the start of `part`, and puts the mapping on `list`, the
    /// page's.
    #[inline]
    pub(super) fn link_to(&self, mut list: PvList<'_, S>, part: &mut Part<'_, S>, bits: u64) {
        self.check_list(&list, bits);
        self.list(&mut list, part, part.range().start);
        drop(list);
        self.write(part, bits);
    }

    /// Asserts that `list` is that of the page that `bits` name, and locked, and that the page has
    /// a reference.
    #[inline]
    pub(super) fn check_list(&self, list: &PvList<'_, S>, bits: u64) {
        let frame = pte::frame(bits);
        debug_assert!(
            bits & pte::PRESENT != 0 && ptr::eq(list.page(), self.vm.page(frame)),
            "the list is another page's"
        );
        machine::invariant!(
            S::Machine: self.vm.is_pv_locked(frame),
            "a page's list is used without its lock"
        );
        machine::invariant!(
            S::Machine: list.page().references() > 0,
            "a page is mapped that has no reference"
        );
    }

    /// Puts `frame`, with the content of the page that is mapped at the start of `part` by these
    /// `bits`, in that page's place, for tasks to write. No other task knows `frame`.
    ///
    /// The mapping is gone and flushed before the page is copied, so nothing that tasks of
    /// this space have written is missing.
    pub(crate) fn replace(
        &self,
        part: &mut Part<'_, S>,
        bits: u64,
        frame: Frame,
        prot: Prot,
    ) -> Result<(), Error> {
        self.prepare(part)?;
        self.take_out(part, bits);
        // SAFETY: the page has the mapping's reference still, and no other task knows `frame`.
        unsafe { self.vm.machine().copy(pte::frame(bits), frame) };
        self.release_mapping(part, bits);
        self.make_first(part, frame, prot);
        Ok(())
    }

    /// Removes the mapping at the start of `part`: no CPU of this space reaches the page any more.
    pub(crate) fn undo(&self, part: &mut Part<'_, S>) {
        let bits = self.bits_at(part);
        debug_assert!(bits & pte::PRESENT != 0, "the caller has found a page here");
        self.take_out(part, bits);
        self.release_mapping(part, bits);
    }

    /// Drops the reference that the mapping at the start of `part` by these `bits` had to its page,
    /// if any.
    #[inline]
    fn release_mapping(&self, part: &Part<'_, S>, bits: u64) {
        let (frame, kind) = (pte::frame(bits), entry::kind(bits));
        if is_kin(bits) {
            self.let_go(part, &[(part.range().start, frame)]);
        } else if self.is_listed(kind) {
            self.vm.release_page(frame);
        }
    }

    /// Empties the entry at the start of `part`, which names a slot of the swap space; the
    /// entry's reference to the slot is the caller's.
    pub(crate) fn forget_slot(&self, part: &mut Part<'_, S>) {
        let address = part.range().start;
        let old = self.clear(part, address, 0);
        debug_assert!(
            entry::kind(old) == Kind::Swapped,
            "the entry names no slot of the swap space"
        );
    }

    /// Removes the mapping at the start of `part` by these `bits`: no CPU of this space reaches the
    /// page any more. The mapping's reference, if it has one, is the caller's. Under the slot's
    /// lock.
    #[inline]
    fn take_out(&self, part: &mut Part<'_, S>, bits: u64) {
        let taken = if self.is_listed(entry::kind(bits)) && !is_kin(bits) {
            self.detach(part, &mut self.vm.lock_pv(pte::frame(bits)), 0)
        } else {
            self.detach_unlisted(part)
        };
        debug_assert!(
            taken == pte::frame(bits),
            "another page was mapped than was found"
        );
    }

    /// The page mapped at `address`, if any, as of an instant.
    pub fn lookup(&self, address: usize) -> Option<Frame> {
        if address >= pte::USER_END {
            return None;
        }
        let _pmap = self.lock_tables();
        let place = self.tree.find_small(address)?;
        let mut locked = self.tree.at(place, VaRange::page(address)).lock_whole();
        let part = locked.parts().next()?;
        match self.entry_at(&part) {
            Entry::Page { frame, .. } => Some(frame),
            Entry::Empty | Entry::Swapped(_) => None,
        }
    }
}
