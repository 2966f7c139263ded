//! Mappings of objects' pages that are on no list: the object's attachments lead to them.
//!
//! Such a mapping is an entry and nothing else: no PV entry, no reference to the page, no note in a
//! block of delayed invalidation ([`crate::system::ObjectPages`]). So processes that map, unmap,
//! fork and exit with the same pages of a file write no common cache line.
//!
//! # Protocol
//! - **map**: under the slot's lock, read the object's entry, and map the page that it shows. The
//!   attachment was listed before. A private copy is made under the slot's lock, too, without a
//!   reference.
//! - **unmap**: under the slot's lock, clear the entry, flush, and give the page the bits that the
//!   walker has set (with its PV lock, and only if the page does not have them yet); then release
//!   the slot.
//! - **walk**: visit all attachments that map the page's index, and lock the slot of each at the
//!   page's address, even if it looks vacant.
//! - **take the page away** (truncation, eviction): own the object's entry, hide the page in it,
//!   walk, and only then drop the object's reference.
//!
//! *The pair*: a mapper reads the object's entry under its slot's lock, and a walker that hides the
//! page first acquires that lock afterwards. If the mapper was first, the walker finds its entry;
//! if the walker was first, the mapper finds the page hidden. So a page that an entry names, or
//! that a copy is being made of, stays as long as the slot is locked.
//!
//! *Attachments made during a walk* are listed before anything is mapped by them, under a lock that
//! the walk acquires, too: a walk that misses one has hidden the page before. A move passes on
//! entries, so it checks the object's entry again, with the new attachment listed, as a fault does.
//!
//! *A mapping found gone* is flushed: entries are cleared and flushed under one hold of the slot's
//! lock, for which the walk has waited. That is the guarantee of delayed invalidation
//! ([`crate::system::Invalidation`]).
//!
//! *Dirty marks* reach the page when the mapping is flushed, and before the slot is released; so a
//! task that reads the page's flag after its walk misses none. An unmap does not write the flag if
//! it is set already: the task that takes the flag later writes the page, or records that it must
//! be written, after that, when no TLB has the mapping any more.

use super::kin::is_kin;
use super::reverse::{How, Removed};
use super::{Pmap, bits, entry};
use crate::error::Error;
use crate::object::{Home, Object, PageRef, entry_of};
use crate::page::{Identity, Page};
use crate::prot::Prot;
use crate::system::System;
use crate::tree::{Kind, Part, Size};
use crate::vm::Vm;
use core::num::NonZeroUsize;
use core::ops::ControlFlow;
use machine::{Atomic, Cpus, Flush, Frame, Ordering, PAGE_SIZE, VaRange, pte};

/// A page of an object, and its index. The entry is owned, so the object stays.
pub(super) struct Of<'a, S: System> {
    object: &'a Object<S>,
    index: u64,
}

/// True if a walk continues.
pub(super) type Step = ControlFlow<()>;

impl<S: System> Pmap<S> {
    /// Returns true if a mapping of this kind is on its page's list, and has a reference to the
    /// page.
    #[inline]
    pub(super) fn is_listed(&self, kind: Kind) -> bool {
        kind == Kind::Private || self.vm.lists_objects()
    }

    /// Does all that can fail before an object's page is mapped at the start of `part`.
    pub(crate) fn prepare_object(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        if self.vm.lists_objects() {
            self.prepare(part)
        } else {
            self.prepare_leaf(part).map(drop)
        }
    }

    /// Maps the object's page in `frame`, which its object showed since the slot was locked, at the
    /// start of `part`, which is prepared, and where nothing is mapped. The mapping is on no list.
    pub(crate) fn make_attached(&self, part: &mut Part<'_, S>, frame: Frame, rights: Prot) {
        debug_assert!(!self.vm.lists_objects(), "mappings of objects are on lists");
        self.write(part, entry::page(frame, Kind::Object, rights));
    }

    /// Maps all of `pages`, which lie in `part`, at those of their addresses where nothing is
    /// mapped.
    pub(crate) fn make_all_attached(
        &self,
        part: &mut Part<'_, S>,
        pages: impl Iterator<Item = (usize, Frame)>,
        rights: Prot,
    ) {
        debug_assert!(!self.vm.lists_objects(), "mappings of objects are on lists");
        machine::invariant!(
            S::Machine: part.size() == Size::Pages,
            "objects' pages are mapped in a table of {:?} pages", part.size()
        );
        let leaf = part.leaf().get().expect("it is prepared");
        let mut made = 0;
        for (address, frame) in pages {
            debug_assert!(
                part.range().contains(address),
                "a page is mapped outside of its part"
            );
            let entry = self.entry(leaf, 0, address);
            if entry.load(Ordering::Relaxed) == 0 {
                // Release: as in `Pmap::write`.
                entry.store(entry::page(frame, Kind::Object, rights), Ordering::Release);
                made += 1;
            }
        }
        part.add(Kind::Object, made);
        self.count_resident(made as isize);
    }

    /// Marks the page in `frame`, an object's with an unlisted mapping, as written. The mapping is
    /// flushed, and its slot still locked.
    pub(super) fn note_dirty(&self, frame: Frame) {
        let page = self.vm.page(frame);
        let flags = Page::<S>::harvest(pte::ACCESSED | pte::DIRTY);
        if page.lacks_after_stores(flags) {
            self.vm.lock_pv(frame).set_flags(flags);
        }
    }

    /// Sets `flags` of the page in `frame`, unless they are set already.
    pub(super) fn note(&self, frame: Frame, flags: u8) {
        if self.vm.page(frame).lacks(flags) {
            self.vm.lock_pv(frame).set_flags(flags);
        }
    }

    /// Passes the walker's marks in `bits`, of an entry that is cleared and flushed, to its page.
    fn harvest(&self, bits: u64) {
        let frame = pte::frame(bits);
        match bits & pte::DIRTY {
            0 => self.note(frame, Page::<S>::harvest(bits)),
            _ => self.note_dirty(frame),
        }
    }

    /// Removes the mapping at the start of `part`, which is unlisted or listed once for several
    /// slots, and flushes it.
    pub(super) fn detach_unlisted(&self, part: &mut Part<'_, S>) -> Frame {
        let page = VaRange::sized(part.range().start, PAGE_SIZE);
        let old = self.clear(part, page.start, 0);
        debug_assert!(
            is_kin(old) || !self.is_listed(entry::kind(old)),
            "the page stays on its list"
        );
        self.flush(Flush::Range(page));
        self.harvest(old);
        pte::frame(old)
    }

    /// Returns true if the object that is mapped at the start of `part` shows the page in `frame`
    /// there. A move checks this when the new mapping is attached.
    pub(super) fn still_shows(&self, part: &Part<'_, S>, frame: Frame) -> bool {
        let at = part.range().start;
        let attached = part.first().and_then(|mapped| mapped.attachment);
        attached.is_some_and(|to| to.object().still_has(to.index(at), frame))
    }

    /// Calls `visit` with the page at `address`, whose slot it locks.
    fn visit_page<R>(&self, address: usize, visit: impl FnOnce(Part<'_, S>) -> R) -> R {
        let _pmap = self.lock_tables();
        let mut locked = self.tree.around(address).lock_whole();
        let mut parts = locked.parts_of(VaRange::sized(address, PAGE_SIZE));
        visit(parts.next().expect("an address has a slot"))
    }
}

impl<S: System> Of<'_, S> {
    /// Visits each place where the page may be mapped, with the slot locked, until `visit` breaks.
    /// O(log attachments of a CPU) and a lock of a slot for each attachment that maps the index.
    fn walk(&self, mut visit: impl FnMut(&Pmap<S>, Part<'_, S>) -> Step) -> Step {
        let pages = self.index..self.index + 1;
        // SAFETY: owners are pmaps, as `Object::attach` says.
        let mut mappers = unsafe { self.object.mappers::<Pmap<S>>(pages) };
        mappers.try_for_each(|(pmap, range, first)| {
            let address = range.start + (self.index - first) as usize * PAGE_SIZE;
            pmap.visit_page(address, |part| visit(&pmap, part))
        })
    }

    /// Takes away the mappings of the page in `frame`, up to the first that must be spared.
    pub(super) fn take_all(&self, frame: Frame, how: How) -> Removed {
        let mut removed = Removed::default();
        let _ = self.walk(|pmap, mut part| {
            if !pmap.maps(&part, frame) {
                return Step::Continue(());
            }
            if how.spares(&part) {
                removed.is_locked = true;
                return Step::Break(());
            }
            pmap.detach_unlisted(&mut part);
            removed.mappings += 1;
            if part.slot().resident() == 0 {
                pmap.free_pv_tables(&mut part);
            }
            Step::Continue(())
        });
        removed
    }

    /// Returns true if the page in `frame` is mapped anywhere. A mapping found gone is flushed.
    fn is_mapped(&self, frame: Frame) -> bool {
        let walked = self.walk(|pmap, part| {
            if pmap.maps(&part, frame) {
                Step::Break(())
            } else {
                Step::Continue(())
            }
        });
        walked.is_break()
    }

    /// Clears `bit` in all entries that map the page in `frame`. Returns true if it was set in one.
    /// Dirty bits are flushed from the TLBs.
    pub(super) fn take_bit(&self, frame: Frame, bit: u64) -> bool {
        let mut was_set = false;
        let _ = self.walk(|pmap, part| {
            let at = part.range();
            if let Some(leaf) = part.leaf().get()
                && pmap.maps(&part, frame)
                && bits::take(pmap.mapping(&part, leaf), frame, bit)
            {
                was_set = true;
                if bit == pte::DIRTY {
                    pmap.flush(Flush::Range(at));
                }
            }
            Step::Continue(())
        });
        was_set
    }
}

/// The result of a search for a page's object.
pub(super) enum Found<R> {
    /// The result of the action on the object.
    Object(R),
    /// The page's mappings are all on its list.
    Listed,
    /// Another task is busy with the page.
    Busy,
}

impl<S: System> Vm<S> {
    /// The result of an action on the object that has the page in `frame`, if its mappings are on
    /// no list. The caller holds the page, and `owned` is the object's entry if the caller owns
    /// that, too.
    pub(super) fn of_object<R>(
        &self,
        frame: Frame,
        owned: Option<NonZeroUsize>,
        ask: impl FnOnce(Of<'_, S>) -> R,
    ) -> Found<R> {
        if self.lists_objects() {
            return Found::Listed;
        }
        if let Some(entry) = owned {
            // SAFETY: the caller owns the entry, which is of an object of this VM.
            let (object, index) = unsafe { entry_of(entry) };
            return Found::Object(ask(Of { object, index }));
        }
        if !matches!(self.page(frame).identity(), Identity::Object(_)) {
            return Found::Listed;
        }
        self.page(frame).retain();
        let held = PageRef::new(self, frame);
        match self.home(&held) {
            Some(home) => Found::Object(ask(Of {
                object: home.object(),
                index: home.index(),
            })),
            None => Found::Busy,
        }
    }

    /// Acts on an object's page, and waits while another task is busy with it.
    pub(super) fn wait_for_object<R>(
        &self,
        frame: Frame,
        owned: Option<NonZeroUsize>,
        mut ask: impl FnMut(Of<'_, S>) -> R,
    ) -> Option<R> {
        let mut round = 0;
        loop {
            match self.of_object(frame, owned, &mut ask) {
                Found::Object(answer) => return Some(answer),
                Found::Listed => return None,
                Found::Busy => S::Machine::relax(round),
            }
            round += 1;
        }
    }
}

impl<S: System> Home<'_, S> {
    /// Takes the page out of the object, if it is clean, unmapped and held by the caller
    /// only. Returns true if it did: then the page is the caller's alone, and its frame becomes
    /// free when that hold is dropped.
    ///
    /// A page without [`Page::DIRTY`] is clean: the task that removed the mappings has put back the
    /// bits that [`Vm::remove_all`] returned. An anonymous page that is clean is zero.
    #[must_use = "the page may still be the object's"]
    pub fn evict(self) -> bool {
        self.take_out(None)
    }

    /// Evicts the page, and leaves `slot` of the swap space in its place, to which the caller has
    /// written it since it was last dirty. Returns true if the slot is the object's from now on;
    /// then the object reads it by [`crate::object::Slots`] on demand.
    ///
    /// # Panics
    /// If the object has no swap space.
    ///
    /// # Safety
    /// The slot is of the object's swap space, reserved for a page of an object, and the caller's;
    /// and it has the page's content.
    #[must_use = "the slot may still be the caller's"]
    pub unsafe fn swap_out(self, slot: u32) -> bool {
        self.take_out(Some(slot))
    }

    fn take_out(self, slot: Option<u32>) -> bool {
        self.vacate(slot, |vm, object, index, frame| {
            vm.lists_objects() || !Of { object, index }.is_mapped(frame)
        })
    }
}
