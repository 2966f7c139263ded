//! Leaving a shared table without a copy of it.

use crate::pmap::{Pmap, superpage};
use crate::pv::{PvTables, Table};
use crate::system::System;
use crate::tree::{Kind, Locked, Part, Size};
use machine::{Atomic, Flush, Ordering, VaRange, pte};

impl<S: System> Pmap<S> {
    /// Leaves the shared tables of slots that are locked whole and whose pages are needed no more;
    /// a member that is alone keeps the table as its own. One flush for all.
    pub(in crate::pmap) fn leave_slots(&self, locked: &mut Locked<'_, S>) {
        let mut gone: Option<VaRange> = None;
        for part in locked.parts().filter(is_shared) {
            // AcqRel: as where entries are removed.
            let old = self.superpage(part.range().start).swap(0, Ordering::AcqRel);
            debug_assert!(
                old & (pte::PRESENT | pte::WRITABLE | pte::HUGE) == pte::PRESENT,
                "a shared table is reached for reading only"
            );
            let VaRange { start, end } = part.range();
            let start = gone.map_or(start, |gone| gone.start);
            gone = Some(VaRange { start, end });
        }
        let Some(gone) = gone else { return };
        self.flush(Flush::Range(gone));
        for mut part in locked.parts().filter(is_shared) {
            self.leave_slot(&mut part);
        }
    }

    /// Leaves the table of `part`, to which no entry leads any more, and no TLB.
    fn leave_slot(&self, part: &mut Part<'_, S>) {
        machine::invariant!(
            S::Machine: part.size() == Size::Shared,
            "a slot leaves that shares nothing"
        );
        let mut family = self.family(part).lock();
        if family.alone().is_some() {
            drop(family);
            return self.take_over(part);
        }
        family.leave(self.member(part));
        let private = part.slot().count(Kind::Private);
        part.slot().set_counts(0, 0);
        drop(family);
        self.count_resident(-(private as isize));
        (part.inside().leaf, part.inside().pv) = (Table::NONE, PvTables::NONE);
        part.set_size(Size::Pages);
    }

    /// Makes the table of `part`, which is the only member, its own.
    pub(in crate::pmap) fn take_over(&self, part: &mut Part<'_, S>) {
        machine::invariant!(
            S::Machine: part.size() == Size::Shared,
            "a slot takes over what it has"
        );
        let leads = self.superpage(part.slot_range().start);
        // Release: as where a table is made.
        leads.store(superpage::table(part.leaf()), Ordering::Release);
        part.set_size(Size::Pages);
    }
}

fn is_shared<S: System>(part: &Part<'_, S>) -> bool {
    part.is_all() && part.size() == Size::Shared
}
