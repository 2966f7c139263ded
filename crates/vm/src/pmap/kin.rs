//! Pages that a fork has shared one by one: one entry on a page's list for all slots that have
//! inherited it.
//!
//! Forks of one space, and the exits of their children, would contend for the lock of each page
//! that they share, and for the cache lines of each list. So slots that inherit pages from each
//! other are *kin*: a family with common PV tables. A page that several members map has *one* entry
//! there, which is on the page's list and holds one reference to the page. Each member has a leaf
//! table of its own, and PV tables of its own for pages that it maps later; their header names the
//! kin's tables. A leaf entry with the mark [`KIN`] stands for the kin's PV entry, and a count says
//! how many members have such an entry. A fork copies the entries of a slot, takes a *seat* (the
//! child's place in the family), and adds to the counts; an exit does the reverse.
//!
//! # Protocol
//! Members and counts change by atomic operations ([`crate::pv`]'s module `kin`); walks hold the
//! family's lock, which comes after slots and PV locks.
//!
//! - **adopt**: the first fork of a slot turns the slot's PV tables into the kin's, and gives the
//!   slot new ones. The fork holds the slot's lock exclusively.
//! - **join** ([`super::fork`]): under the slots of both, the child's entries are written with the
//!   mark; then the child becomes a member, and each count rises by one. Until then the parent's
//!   mapping keeps the page, as the parent's slot is locked.
//! - **let go** ([`Pmap::let_go`]): under the slot's lock the entry is cleared and *flushed*; then
//!   the count falls by one. The member that lets go last locks the page's list, removes the kin's
//!   entry, and drops its reference. A count of 1 does not change while the slot of the member that
//!   maps the page is locked: only a fork of that slot could add to it, and only a walk with its
//!   lock could take it.
//! - **removal by the reverse map** ([`super::reverse`]): with the page's list and the family
//!   locked, choose a member that maps the page; lock its slot, as for any other entry; begin anew
//!   until the kin's entry is gone. If no member maps the page, one has cleared its entry and must
//!   flush before it lets go: wait for it.
//! - **leave**: a slot that gives up its PV tables maps no page, so it has let go of all; the last
//!   member frees the kin's tables.
//!
//! A flush always comes before a count falls, and a walk waits until the count is 0. So letting go
//! needs no delayed invalidation; neither do [`super::shared`] tables.
//!
//! # What stays with lists
//! A page that a slot maps after the first fork is on its list by the slot's own PV entry, and so
//! is each child's mapping of it. So are all pages of a child that finds the family full; that
//! child starts a family with its own children. A slot that moves a page, or grows so large that it
//! shares its table ([`super::shared`]), first gives it an entry of its own.

use super::Pmap;
use super::entry::{self, KIN};
use crate::error::Error;
use crate::frames::Content;
use crate::page::PvList;
use crate::pv::{Kin, Pages, PvTables};
use crate::system::{ForkTables, System};
use crate::tree::{ALL, Kind, Part, Size};
use core::ptr;
use machine::{Atomic, AtomicInt, Frame, Ordering, pte};

/// The fewest private pages of a slot that are worth the kin's tables.
const FROM: usize = 4;

impl<S: System> Pmap<S> {
    /// The kin of the slot of `part`, if it has any.
    #[inline]
    pub(super) fn kin(&self, part: &Part<'_, S>) -> Option<Kin> {
        // SAFETY: the slot is locked, or a walk shares it.
        unsafe { part.pv_tables().kin(self.vm.machine()) }
    }

    /// Returns true if a fork makes `part`, a whole slot whose pages are mapped one by one, the
    /// first of kin.
    pub(super) fn begins_kin(&self, part: &Part<'_, S>) -> bool {
        matches!(self.vm.fork_tables(), ForkTables::Shared { .. })
            && part.size() == Size::Pages
            && part.slot().count(Kind::Private) >= FROM
            && self.kin(part).is_none()
    }

    /// Makes the slot of `part`, which is locked exclusively, the first of kin. An error leaves it
    /// unchanged.
    pub(super) fn adopt(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        machine::invariant!(
            S::Machine: part.size() == Size::Pages && self.kin(part).is_none(),
            "a slot becomes the first of kin twice"
        );
        let (machine, tables) = (self.vm.machine(), part.pv_tables());
        let leaf = part.leaf().get().expect("a mapping has a table");
        let mut own = PvTables::NONE;
        for address in tables.spans(part.slot_range().start) {
            match self.vm.allocate(Content::Any) {
                // SAFETY: the frame is fresh, and no other task knows the tables.
                Ok(frame) => unsafe {
                    own.add(machine, frame, address, self.member(part), leaf);
                },
                Err(error) => {
                    own.take()
                        .for_each(|frame| self.vm.free(frame, Content::Any));
                    return Err(error);
                }
            }
        }
        let mut pages = Pages::NONE;
        for (address, bits) in self.used(part.leaf(), part.slot_range()) {
            if entry::kind(bits) == Kind::Private {
                pages.add(address);
                // Relaxed: a mark of this slot's. The walker may set others.
                self.entry(leaf, 0, address)
                    .fetch_or(KIN, Ordering::Relaxed);
            }
        }
        debug_assert!(!pages.is_none(), "kin have no page in common");
        let seat = self.family(part).lock().become_kin(leaf);
        let kin = Kin { tables, seat };
        // SAFETY: the slot's lock is held.
        unsafe { kin.add(machine, &pages) };
        // SAFETY: the slot's lock is held, and the tables are there.
        unsafe { own.set_kin(machine, Some(kin)) };
        part.inside().pv = own;
        Ok(())
    }

    /// Returns true if the kin of `part` had room for one more member a moment ago.
    pub(super) fn kin_have_room(&self, part: &Part<'_, S>) -> bool {
        self.kin(part).is_some_and(|kin| {
            // SAFETY: the slot is a member, and held.
            unsafe { kin.have_room(self.vm.machine()) }
        })
    }

    /// Makes `to` a member of its parent's `kin`, and counts the pages that it has `inherited`. If
    /// there is no room, they get entries of their own. Under the locks of both slots.
    pub(super) fn join_kin(&self, kin: Kin, to: &mut Part<'_, S>, inherited: &Pages) {
        debug_assert!(!inherited.is_none(), "a child without pages becomes kin");
        machine::invariant!(S::Machine: self.kin(to).is_none(), "a slot becomes kin twice");
        let (machine, start) = (self.vm.machine(), to.slot_range().start);
        let leaf = to.leaf().get().expect("a mapping has a table");
        // SAFETY: the parent, whose slot is held, is a member; the child's slot is locked.
        unsafe {
            match kin.join(machine, self.member(to), leaf) {
                Some(kin) => {
                    kin.add(machine, inherited);
                    to.pv_tables().set_kin(machine, Some(kin));
                }
                None => inherited
                    .addresses(start)
                    .for_each(|address| self.list_apart(to, address)),
            }
        }
    }

    /// Gives the page at `address` of `part`, whose entry has the mark, a PV entry of the slot's
    /// own and one more reference, and clears the mark. The page is still counted among the kin's.
    /// Under the slot's lock.
    fn list_apart(&self, part: &Part<'_, S>, address: usize) {
        let leaf = part.leaf().get().expect("a mapping has a table");
        let entry = self.entry(leaf, 0, address);
        let bits = entry.load(Ordering::Relaxed);
        debug_assert!(is_kin(bits), "the page is the slot's own already");
        let frame = pte::frame(bits);
        let mut list = self.vm.lock_pv(frame);
        self.vm.page(frame).retain();
        self.list(&mut list, part, address);
        // Relaxed: as where the mark is set.
        entry.fetch_and(!KIN, Ordering::Relaxed);
    }

    /// Replaces the kin's entry of the page at `address` of `part` by one of the slot's own.
    pub(super) fn be_own(&self, part: &Part<'_, S>, address: usize) {
        self.list_apart(part, address);
        let leaf = part.leaf().get().expect("a mapping has a table");
        let bits = self.entry(leaf, 0, address).load(Ordering::Relaxed);
        self.let_go(part, &[(address, pte::frame(bits))]);
    }

    /// Takes `part`, a whole slot, out of its kin, if it has any: all its pages get entries of the
    /// slot's own. The slot is locked exclusively.
    pub(super) fn leave_kin(&self, part: &mut Part<'_, S>) {
        let Some(kin) = self.kin(part) else { return };
        for (address, bits) in self.used(part.leaf(), part.slot_range()) {
            if is_kin(bits) {
                self.be_own(part, address);
            }
        }
        self.quit(part, kin);
    }

    /// Takes each slot that is the only member of its kin out of them, after a fork that has
    /// failed: that frees the memory of the kin's tables.
    #[cold]
    pub(crate) fn leave_lone_kin(&self) {
        let _pmap = self.lock_tables();
        for place in self.tree.occupied(ALL).filter(|place| place.level == 0) {
            let mut locked = self.tree.at(place, place.range).lock_whole();
            for mut part in locked.parts() {
                // SAFETY: the slot is locked.
                let is_alone = |kin: Kin| unsafe { kin.is_alone(self.vm.machine()) };
                if part.size() == Size::Pages && self.kin(&part).is_some_and(is_alone) {
                    self.leave_kin(&mut part);
                }
            }
        }
    }

    /// Ends the membership of the slot of `part`, which maps no page of its `kin` any more.
    pub(super) fn quit(&self, part: &Part<'_, S>, mut kin: Kin) {
        machine::invariant!(
            S::Machine: part.slot().is_locked(),
            "a member leaves under its slot's lock"
        );
        let machine = self.vm.machine();
        // SAFETY: this slot is a member still, and locked, and has tables.
        let is_last = unsafe {
            part.pv_tables().set_kin(machine, None);
            kin.leave(machine)
        };
        if is_last {
            let tables = kin.tables.take();
            tables.for_each(|table| self.vm.free(table, Content::Any));
        }
    }

    /// Lets go of the kin's `pages`, which were mapped in the slot of `part` at these addresses; no
    /// CPU reaches them there any more. Under the slot's lock.
    pub(super) fn let_go(&self, part: &Part<'_, S>, pages: &[(usize, Frame)]) {
        let machine = self.vm.machine();
        let kin = self.kin(part).expect("the mark says so");
        debug_assert!(
            pages
                .iter()
                .all(|&(address, _)| part.slot_range().contains(address)),
            "a slot lets another's pages go"
        );
        let mut these = Pages::NONE;
        pages.iter().for_each(|&(address, _)| these.add(address));
        // SAFETY: this slot is a member, and locked.
        let last = unsafe { kin.take(machine, &these) };
        if last.is_none() {
            return;
        }
        for &(address, frame) in pages.iter().filter(|(address, _)| last.has(*address)) {
            self.end_of_kin(&mut self.vm.lock_pv(frame), kin, address, frame);
        }
    }

    /// Lets go of one page, whose list the caller has locked.
    pub(super) fn let_go_listed(
        &self,
        part: &Part<'_, S>,
        list: &mut PvList<'_, S>,
        address: usize,
        frame: Frame,
    ) {
        let kin = self.kin(part).expect("the mark says so");
        let mut this = Pages::NONE;
        this.add(address);
        // SAFETY: this slot is a member, and locked.
        if !unsafe { kin.take(self.vm.machine(), &this) }.is_none() {
            self.end_of_kin(list, kin, address, frame);
        }
    }

    /// Removes the entry of `kin` from the page's list, and drops its reference: no member maps the
    /// page any more.
    fn end_of_kin(&self, list: &mut PvList<'_, S>, kin: Kin, address: usize, frame: Frame) {
        debug_assert!(
            ptr::eq(list.page(), self.vm.page(frame)),
            "the list is another page's"
        );
        machine::invariant!(
            // SAFETY: the caller's slot is a member, and locked.
            S::Machine: unsafe { kin.count(self.vm.machine(), address) } == 0,
            "one of kin has the page still"
        );
        // SAFETY: a page of kin is on its list by their entry, until the last member that lets go
        // removes it.
        unsafe { list.remove(self.vm.machine(), kin.entry(address)) };
        self.vm.release_page(frame);
    }

    /// Returns true if the page that is mapped at the start of `part` by these `bits` is private
    /// and nothing but this mapping maps it, holds it or knows it by another name. Under the lock
    /// of its slot, without which no task can add a mapping.
    #[inline]
    pub(crate) fn is_only(&self, part: &Part<'_, S>, bits: u64) -> bool {
        // In this order: a member that becomes its own adds a reference before it takes its count.
        entry::kind(bits) == Kind::Private
            && self.has_alone(part, bits)
            && self.vm.is_exclusive(pte::frame(bits))
    }

    /// Returns true if no other member of kin maps the page at the start of `part`, whose entry has
    /// these `bits`.
    #[inline]
    pub(super) fn has_alone(&self, part: &Part<'_, S>, bits: u64) -> bool {
        !is_kin(bits) || self.is_alone_of_kin(part)
    }

    fn is_alone_of_kin(&self, part: &Part<'_, S>) -> bool {
        let machine = self.vm.machine();
        let kin = self.kin(part).expect("the mark says so");
        // SAFETY: this slot is a member, and locked. A count of 1 stays, as the slot is locked.
        let count = unsafe { kin.count(machine, part.range().start) };
        debug_assert!(count > 0, "a member's page is not counted");
        count == 1
    }
}

/// Returns true if an entry has the mark.
pub(super) const fn is_kin(bits: u64) -> bool {
    bits & (KIN | pte::PRESENT) == KIN | pte::PRESENT
}
