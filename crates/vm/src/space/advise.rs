//! A task's advice about its memory (`madvise`).

use super::Space;
use super::lock::pages;
use crate::error::Error;
use crate::flags::Flags;
use crate::prot::Prot;
use crate::system::{Op, System};
use machine::{Access, PAGE_SIZE, VaRange};

/// A piece of advice about a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// No special treatment.
    Normal,
    /// Pages are used in no order.
    Random,
    /// Pages are used in their order, once.
    Sequential,
    /// Pages are used soon: those that are not in memory are paged in.
    WillNeed,
    /// Pages are not used any more: they are dropped, and the content of private ones is lost.
    DontNeed,
    /// Pages are not used any more: they are dropped when memory is short, unless they are written
    /// before; until then their content stays. Pages that a fork has shared are left unchanged.
    /// Private anonymous memory only.
    Free,
    /// Pages are not used any more in any space: the part of the object is zero from now on. Only
    /// for mappings that are shared, and may become writable.
    Remove,
    /// Pages are not used soon: they are reclaimed first if memory is short.
    Cold,
    /// Pages are not used soon: they are written to their store or to the swap space now.
    PageOut,
    /// Children do not inherit the range.
    DontFork,
    /// Children inherit the range.
    DoFork,
    /// Children find zeroes; private anonymous memory only.
    WipeOnFork,
    /// Children find the content.
    KeepOnFork,
    /// Dumps of the memory leave the range out.
    DontDump,
    /// Dumps of the memory have the range.
    DoDump,
    /// The range should use superpages.
    Huge,
    /// The range should not use superpages.
    NoHuge,
    /// Pages are paged in as if they were read.
    PopulateRead,
    /// Pages are paged in as if they were written.
    PopulateWrite,
}

impl<S: System> Space<S> {
    /// Records a piece of advice for `range` (its end rounded up to pages), or follows it.
    ///
    /// If part of the range is not mapped, nothing changes.
    pub fn advise(&self, range: VaRange, advice: Advice) -> Result<(), Error> {
        let order = Flags::RANDOM | Flags::SEQUENTIAL;
        let size = Flags::HUGE | Flags::NO_HUGE;
        match advice {
            Advice::Normal => self.reflag(range, order, Flags::NONE),
            Advice::Random => self.reflag(range, order, Flags::RANDOM),
            Advice::Sequential => self.reflag(range, order, Flags::SEQUENTIAL),
            Advice::DontFork => self.reflag(range, Flags::NONE, Flags::DONT_FORK),
            Advice::DoFork => self.reflag(range, Flags::DONT_FORK, Flags::NONE),
            Advice::WipeOnFork => self.reflag(range, Flags::NONE, Flags::WIPE_ON_FORK),
            Advice::KeepOnFork => self.reflag(range, Flags::WIPE_ON_FORK, Flags::NONE),
            Advice::DontDump => self.reflag(range, Flags::NONE, Flags::DONT_DUMP),
            Advice::DoDump => self.reflag(range, Flags::DONT_DUMP, Flags::NONE),
            Advice::Huge => self.reflag(range, size, Flags::HUGE),
            Advice::NoHuge => self.reflag(range, size, Flags::NO_HUGE),
            Advice::DontNeed => self.discard(range),
            Advice::WillNeed => self.will_need(range),
            Advice::Free => self.free(range),
            Advice::Remove => self.punch(range),
            Advice::Cold => self.cool(range),
            Advice::PageOut => self.page_out(range),
            Advice::PopulateRead => self.bring_all(range, Access::Read),
            Advice::PopulateWrite => self.bring_all(range, Access::Write),
        }
    }

    /// Takes `less` from the flags of the mappings in `range`, and adds `more`.
    pub(super) fn reflag(&self, range: VaRange, less: Flags, more: Flags) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.reflag_pages(range, less, more))
    }

    fn reflag_pages(&self, range: VaRange, less: Flags, more: Flags) -> Result<(), Error> {
        let _op = self.begin(Op::Change);
        self.pmap.tree.find(range.start).refuse_hole(range)?;
        let mut locked = self.pmap.tree.over(range).lock()?;
        let change = |flags: Flags| flags.without(less).with(more);
        let mut is_private = true;
        for mut part in locked.parts() {
            part.visit(|mapped| {
                is_private &= mapped.is_private_anonymous();
                Ok(())
            })?;
            part.make_room()?;
            if more.has(Flags::LOCKED) {
                // Locked memory is in no shared table.
                self.pmap.own_used(&mut part)?;
            }
        }
        if more.has(Flags::WIPE_ON_FORK) && !is_private {
            let reason = "only private anonymous memory can be wiped on fork";
            return Err(Error::Invalid { reason });
        }
        self.count_change(&mut locked, change)?;
        for mut part in locked.parts() {
            if !part.is_all() || more.has(Flags::NO_HUGE) {
                self.pmap.split(&mut part);
            }
            part.update(|_, attributes| attributes.flags = change(attributes.flags));
        }
        Ok(())
    }

    /// The rights of tasks at `address`, as of an instant; `None` where nothing is mapped.
    fn rights_at(&self, address: usize) -> Option<Prot> {
        let _op = self.begin(Op::Look);
        let page = VaRange::sized(address, PAGE_SIZE);
        let mut locked = self.pmap.tree.over(page).lock().ok()?;
        let part = locked.parts().next()?;
        Some(part.first()?.flags.prot())
    }

    /// Pages in all of `range`, each page as `access` would, if the page's rights allow that
    /// explicitly; no stack grows.
    fn bring_all(&self, range: VaRange, access: Access) -> Result<(), Error> {
        pages(Self::in_pages(range)?).try_for_each(|page| {
            let address = page.start;
            let hole = Error::NotMapped { address };
            let prot = self.rights_at(address).ok_or(hole)?;
            let may = match access {
                Access::Read => prot.reads(),
                Access::Write => prot.writes(),
                Access::Execute => prot.executes(),
            };
            if !may {
                let reason = "the memory may not be used so";
                return Err(Error::Invalid { reason });
            }
            self.bring(page, access).map_err(|error| match error {
                // The mapping has changed meanwhile.
                Error::Segv(_) => hole,
                other => other,
            })
        })
    }
}
