//! Leaving a shared table with a copy of it.

use super::Kept;
use crate::error::Error;
use crate::frames::Content;
use crate::page::Page;
use crate::pmap::entry::{self, Entry};
use crate::pmap::{Pmap, superpage};
use crate::pv::{PvTables, Table};
use crate::system::System;
use crate::tree::{Kind, Part, Size};
use machine::{Atomic, AtomicInt, Flush, Frame, Ordering, pte};

/// The tables of a slot.
#[derive(Clone, Copy)]
struct Tables {
    leaf: Frame,
    pv: PvTables,
}

impl<S: System> Pmap<S> {
    /// Gives the slot of `part` tables of its own, if they are shared. After an error nothing has
    /// changed.
    #[inline]
    pub(crate) fn own(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        match part.size() {
            // A copy of the part, so that the caller's stays in registers.
            Size::Shared => self.own_shared(&mut part.cut(part.range())),
            _ => Ok(()),
        }
    }

    /// Makes the table the slot's own, if it has entries in the range of `part`, or none at all.
    #[inline]
    pub(crate) fn own_used(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        match part.size() {
            Size::Shared => self.own_shared_if_used(&mut part.cut(part.range())),
            _ => Ok(()),
        }
    }

    #[cold]
    fn own_shared_if_used(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        match self.used(part.leaf(), part.range()).next() {
            Some(_) => self.own_shared(part),
            // Other tasks have emptied the table. No task would leave it when the slot is unmapped
            // in parts.
            None if self.is_emptied(part) => self.own_shared(part),
            None => Ok(()),
        }
    }

    /// Returns true if the table of `part`, which other slots may share, has no entry any more.
    fn is_emptied(&self, part: &Part<'_, S>) -> bool {
        let _steady = self.steady(part);
        part.slot().entries() == 0
    }

    /// Makes the table the slot's own, if that needs no copy. Returns false if it does.
    pub(in crate::pmap) fn own_alone(&self, part: &mut Part<'_, S>) -> bool {
        if part.size() != Size::Shared {
            return true;
        }
        let is_alone = self.family(part).lock().alone().is_some();
        if is_alone {
            self.take_over(part);
        }
        is_alone
    }

    #[cold]
    fn own_shared(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        if self.own_alone(part) {
            return Ok(());
        }
        machine::invariant!(
            S::Machine: part.slot().count(Kind::Object) == 0,
            "a table with objects' pages is shared"
        );
        let old = tables(part);
        let new = self.bring_tables(part, old)?;
        let (private, swapped) = self.copy_entries(part, old, new);
        (part.inside().leaf, part.inside().pv) = (Table::of(new.leaf), new.pv);
        let leads = self.superpage(part.slot_range().start);
        // AcqRel: as where entries are removed; a walker that finds the table finds its entries.
        let table = superpage::table(part.leaf());
        let left = leads.swap(table, Ordering::AcqRel);
        debug_assert!(
            pte::frame(left) == old.leaf && left & pte::WRITABLE == 0,
            "a shared table is reached for reading only"
        );
        self.flush(Flush::Range(part.slot_range()));
        self.leave_with(part, old, private, swapped);
        Ok(())
    }

    /// Tables like the `old` ones, without entries.
    fn bring_tables(&self, part: &Part<'_, S>, old: Tables) -> Result<Tables, Error> {
        let leaf = self.vm.allocate_table()?;
        let mut pv = PvTables::NONE;
        for address in old.pv.spans(part.slot_range().start) {
            match self.vm.allocate(Content::Any) {
                // SAFETY: the frame is fresh, and no other task knows the tables.
                Ok(frame) => unsafe {
                    pv.add(self.vm.machine(), frame, address, self.member(part), leaf);
                },
                Err(error) => {
                    self.free_tables_of(Tables { leaf, pv });
                    return Err(error);
                }
            }
        }
        Ok(Tables { leaf, pv })
    }

    /// Copies the entries of `old` to `new`, to which no entry leads yet; returns the numbers of
    /// private pages and of swapped pages copied.
    fn copy_entries(&self, part: &Part<'_, S>, old: Tables, new: Tables) -> (usize, usize) {
        let mut counts = (0, 0);
        for (address, _) in self.used(Table::of(old.leaf), part.slot_range()) {
            match self.copy_entry(address, old, new) {
                Some(Kind::Private) => counts.0 += 1,
                Some(_) => counts.1 += 1,
                None => {}
            }
        }
        counts
    }

    /// Copies the entry at `address`; returns its kind.
    fn copy_entry(&self, address: usize, old: Tables, new: Tables) -> Option<Kind> {
        let from = self.entry(old.leaf, 0, address);
        let to = self.entry(new.leaf, 0, address);
        let mut list = match self.keep(from) {
            Kept::Empty => return None,
            Kept::Swapped(slot) => {
                self.vm.retain_swapped(slot);
                to.store(entry::swapped(slot), Ordering::Relaxed);
                return Some(Kind::Swapped);
            }
            Kept::Page(_, list) => list,
        };
        machine::invariant!(
            S::Machine: to.load(Ordering::Relaxed) == 0,
            "a page is copied to a table twice"
        );
        // AcqRel: the walker may set accessed, as in `clear`.
        let bits = from.fetch_and(!pte::WRITABLE, Ordering::AcqRel);
        self.check_list(&list, bits);
        debug_assert!(
            entry::kind(bits) == Kind::Private,
            "a table with objects' pages is shared"
        );
        list.page().retain();
        let pv = new.pv.entry(address).expect("tables like the old ones");
        // SAFETY: the entry is of a fresh table.
        unsafe { list.insert(self.vm.machine(), pv) };
        let bits = bits & !(pte::WRITABLE | pte::DIRTY | pte::ACCESSED);
        to.store(bits, Ordering::Relaxed);
        Some(Kind::Private)
    }

    /// Leaves the family of the `old` tables; no TLB of this space has an entry of them any more.
    fn leave_with(&self, part: &mut Part<'_, S>, old: Tables, private: usize, swapped: usize) {
        // SAFETY: this slot is a member still, and members keep the tables.
        let family = unsafe { old.pv.family(self.vm.machine()) };
        let mut family = family.expect("a family has a PV table").lock();
        let is_last = family.alone().is_some();
        if !is_last {
            family.leave(self.member(part));
        }
        let before = part.slot().count(Kind::Private);
        part.slot().set_counts(private, swapped);
        drop(family);
        self.count_resident(private as isize - before as isize);
        part.set_size(Size::Pages);
        if is_last {
            self.take_apart(part, old);
        }
    }

    /// Frees the `old` tables, which only this slot has and does not use any more, with their
    /// references to pages and slots of the swap space.
    #[cold]
    fn take_apart(&self, part: &Part<'_, S>, old: Tables) {
        for (address, bits) in self.used(Table::of(old.leaf), part.slot_range()) {
            self.entry(old.leaf, 0, address).store(0, Ordering::Relaxed);
            let frame = match Entry::decode(bits) {
                Entry::Page { frame, .. } => frame,
                Entry::Swapped(slot) => {
                    self.vm.release_swapped(slot);
                    continue;
                }
                Entry::Empty => continue,
            };
            debug_assert!(
                entry::kind(bits) == Kind::Private,
                "a table with objects' pages is shared"
            );
            let mut list = self.vm.lock_pv(frame);
            list.set_flags(Page::<S>::harvest(bits));
            let pv = old.pv.entry(address).expect("a mapping has a PV table");
            // SAFETY: the mapping's, so it is on this list.
            unsafe { list.remove(self.vm.machine(), pv) };
            drop(list);
            self.vm.release_page(frame);
        }
        self.free_tables_of(old);
    }

    /// Frees tables without entries, to which nothing leads.
    fn free_tables_of(&self, mut tables: Tables) {
        tables
            .pv
            .take()
            .for_each(|frame| self.vm.free(frame, Content::Any));
        self.vm.free(tables.leaf, Content::Zeroed);
    }
}

fn tables<S: System>(part: &Part<'_, S>) -> Tables {
    Tables {
        leaf: part.leaf().get().expect("a shared slot has a table"),
        pv: part.pv_tables(),
    }
}
