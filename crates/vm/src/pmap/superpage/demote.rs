//! Demotion of a superpage to pages.

use super::{Pages, PvRun, Superpage, piece, table};
use crate::pmap::Pmap;
use crate::system::System;
use crate::tree::{Part, Size};
use machine::{Atomic, Frame, Memory, Ordering, pte};

impl<S: System> Pmap<S> {
    /// Maps the slot of `part` by pages, with the same rights. They may become a superpage again.
    #[inline]
    pub(crate) fn demote(&self, part: &mut Part<'_, S>) {
        if part.size() == Size::Superpage {
            self.demote_locked(part);
        }
    }

    #[cold]
    fn demote_locked(&self, part: &mut Part<'_, S>) {
        let first = self.superpage_frame(part);
        self.vm.walk(first);
        let run = self.lock_run(first);
        self.put_table_back(part, &run);
    }

    /// Splits the superpage while the caller also holds the PV list of the page at the start of
    /// `part`. Returns false if that would need waiting.
    #[must_use]
    pub(in crate::pmap) fn try_demote(&self, part: &mut Part<'_, S>) -> bool {
        if part.size() != Size::Superpage {
            return true;
        }
        let pages: Pages<'_, S> = self.pages_from(self.superpage_frame(part));
        let but = pte::index(part.range().start, 0);
        let Some(run) = PvRun::try_around(pages, pte::ENTRIES, but) else {
            return false;
        };
        self.put_table_back(part, &run);
        true
    }

    /// Demotes the slot of `part` for good, since an operation concerns a part of it only. Gives
    /// back its unused reserved frames.
    #[inline]
    pub(crate) fn split(&self, part: &mut Part<'_, S>) {
        if matches!(part.size(), Size::Run | Size::Superpage) {
            self.split_run(part);
        }
    }

    #[cold]
    fn split_run(&self, part: &mut Part<'_, S>) {
        self.demote(part);
        self.end_reservation(part);
        part.set_size(Size::Pages);
    }

    /// The first frame of the superpage that the slot of `part` is mapped by.
    pub(super) fn superpage_frame(&self, part: &Part<'_, S>) -> Frame {
        let superpage = self.superpage(part.range().start);
        let bits = superpage.load(Ordering::Relaxed);
        debug_assert!(bits & pte::HUGE != 0, "a table is in the superpage's place");
        pte::frame(bits)
    }

    /// Replaces the superpage by the leaf table, with the superpage's bits in each entry.
    fn put_table_back(&self, part: &mut Part<'_, S>, _locked: &Superpage<'_, S>) {
        let leaf = part.leaf().get().expect("a superpage has a table");
        let superpage = self.superpage(part.range().start);
        let mut old = superpage.load(Ordering::Relaxed);
        machine::invariant!(
            S::Machine: self.is_run_locked(pte::frame(old)),
            "a superpage ends under the PV locks of its pages"
        );
        loop {
            debug_assert!(old & pte::HUGE != 0, "the table is back already");
            // No walker reaches the table yet.
            for index in 0..pte::ENTRIES {
                // SAFETY: the slot's leaf table, and the slot is locked.
                let entry = unsafe { self.vm.machine().word(leaf, index) };
                entry.store(piece(old, index), Ordering::Relaxed);
            }
            // Release: a walker that finds the table finds its entries. If the walker has marked
            // the superpage meanwhile, this begins again.
            let table = table(part.leaf());
            match superpage.compare_exchange(old, table, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(marked) => old = marked,
            }
        }
        part.set_size(Size::Run);
    }
}
