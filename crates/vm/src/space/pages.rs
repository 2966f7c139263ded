//! Advice that concerns the pages: dropping their content (`madvise` with `MADV_DONTNEED`), at once
//! or when memory is short (`MADV_FREE`); paging in, and paging out.

use super::Space;
use crate::error::Error;
use crate::flags::Flags;
use crate::frames::Content;
use crate::object::{Attached, PageRef, Pattern};
use crate::pmap::Entry;
use crate::reclaim::Batch;
use crate::swap::CLUSTER;
use crate::system::{Op, System};
use crate::tree::{Locked, Mapped};
use alloc::vec::Vec;
use core::mem;
use machine::{Frame, PAGE_SIZE, VaRange};

/// The pages found under a lock, each with a reference.
struct Found {
    frames: [Frame; CLUSTER],
    count: usize,
}

impl Found {
    const NONE: Found = Found {
        frames: [Frame(0); CLUSTER],
        count: 0,
    };
}

impl<S: System> Space<S> {
    /// Drops the pages of `range` (its end rounded up to pages): the next access finds
    /// zeroes. When it returns, no CPU can reach the old pages. The regions stay.
    ///
    /// If part of the range is not mapped, or locked in memory, nothing changes.
    pub fn discard(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.discard_pages(range))
    }

    fn discard_pages(&self, range: VaRange) -> Result<(), Error> {
        let _op = self.begin(Op::Look);
        let place = self.pmap.tree.find(range.start);
        place.refuse_hole(range)?;
        let mut removal = self.pmap.removal();
        removal.lock(place, range)?;
        removal
            .locked
            .parts()
            .visit(|mapped| refuse_locked(&mapped))?;
        removal.pages();
        Ok(())
    }

    /// Gives up the pages of `range`: each may be dropped until it is written again, and an access
    /// finds its content, or zeroes. Private anonymous memory only. If part of the range is not
    /// mapped, or locked in memory, nothing changes.
    pub(super) fn free(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let _op = self.begin(Op::Look);
        let place = self.pmap.tree.find(range.start);
        place.refuse_hole(range)?;
        let _pmap = self.pmap.lock_tables();
        let mut locked = self.pmap.tree.at(place, range).lock()?;
        locked.parts().visit(|mapped| {
            refuse_locked(&mapped)?;
            if mapped.is_private_anonymous() {
                Ok(())
            } else {
                invalid("only private anonymous memory can be freed")
            }
        })?;
        self.pmap.give_up(&mut locked);
        Ok(())
    }

    /// Pages in the pages that are not in memory; private memory that was never touched stays
    /// untouched.
    pub(super) fn will_need(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.mapped(range, |_| Ok(()), |_| ())?;
        for address in (range.start..range.end).step_by(PAGE_SIZE) {
            match self.whereabouts(address) {
                // Only reads the page, whatever the rights: the task that uses it maps it.
                Some(Whereabouts::Swapped(slot)) => self.vm.with_frames(|| {
                    let brought = self.vm.swap_in(slot, Pattern::Normal);
                    brought.map(drop)
                })?,
                Some(Whereabouts::Object(attached, index)) => {
                    let bring = || attached.object().page(index, Pattern::Random).map(drop);
                    match self.vm.with_frames(bring) {
                        Ok(()) | Err(Error::Bus { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Some(Whereabouts::Nowhere) | None => {}
            }
        }
        Ok(())
    }

    /// Makes parts of objects zero.
    pub(super) fn punch(&self, range: VaRange) -> Result<(), Error> {
        let mut pieces = Vec::new();
        let range = Self::in_pages(range)?;
        let check = |mapped: &Mapped<'_, S>| {
            let shared = mapped.flags.has(Flags::SHARED);
            match mapped.attachment {
                _ if mapped.flags.has(Flags::LOCKED) => invalid("the memory is locked"),
                None => invalid("only memory of an object can be removed"),
                Some(_) if !shared || mapped.flags.has(Flags::READ_ONLY) => Err(Error::Denied),
                Some(_) => Self::add_piece(&mut pieces, mapped),
            }
        };
        self.mapped(range, check, |_| ())?;
        // A lack of memory refuses the whole operation before anything has changed.
        let zeroes = self.vm.with_frames(|| {
            for (attached, pages) in &pieces {
                attached.object().prepare_to_punch(pages.clone())?;
            }
            let frame = self.vm.allocate_page(Content::Zeroed)?;
            Ok(PageRef::new(&self.vm, frame))
        })?;
        pieces.iter().try_for_each(|(attached, pages)| {
            let object = attached.object();
            object.punch(pages.clone(), zeroes.frame(), |hold| {
                self.vm.remove_all(hold);
            })
        })
    }

    /// Makes pages old, so that they are reclaimed first.
    pub(super) fn cool(&self, range: VaRange) -> Result<(), Error> {
        self.each_page(range, |page| {
            let _ = self.vm.test_referenced_at(page.frame());
            self.vm.page(page.frame()).set_age(0);
        })
    }

    /// Writes pages to their store, or to the swap space, and frees them.
    pub(super) fn page_out(&self, range: VaRange) -> Result<(), Error> {
        let mut batch = Batch::new(&self.vm);
        self.each_page(range, |page| {
            self.vm.send_out(page, &mut batch);
        })?;
        self.vm.launder(&mut batch);
        Ok(())
    }

    /// Calls `act` with each page that is mapped in `range`, if no part of that is locked in
    /// memory; with no lock held.
    fn each_page<'a>(
        &'a self,
        range: VaRange,
        mut act: impl FnMut(PageRef<'a, S>),
    ) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let mut found = Found::NONE;
        let mut next = self.mapped(range, refuse_locked, |locked| {
            self.find_pages(locked, &mut found)
        })?;
        loop {
            let frames = &found.frames[..mem::take(&mut found.count)];
            frames
                .iter()
                .for_each(|&at| act(PageRef::new(&self.vm, at)));
            if next == range.end {
                return Ok(());
            }
            let _pmap = self.pmap.lock_tables();
            let rest = VaRange {
                start: next,
                ..range
            };
            debug_assert!(range.contains(next), "a walk leaves its range");
            let place = self.pmap.tree.find(next);
            next = match place.level {
                0 => {
                    let rest = rest.common(place.range);
                    let mut locked = self.pmap.tree.at(place, rest).lock_whole();
                    self.find_pages(&mut locked, &mut found)
                }
                // Pages are in slots of level 0.
                _ => rest.common(place.range).end,
            };
        }
    }

    /// Adds the pages that are mapped in the first part of `locked` to those `found`, with a
    /// reference to each, as far as there is room. Returns the address from which to continue.
    fn find_pages(&self, locked: &mut Locked<'_, S>, found: &mut Found) -> usize {
        let Some(part) = locked.parts().next() else {
            return locked.range().end;
        };
        for (address, frame) in self.pmap.pages(&part) {
            if found.count == CLUSTER {
                return address;
            }
            debug_assert!(part.range().contains(address), "another slot's page");
            if let Some(held) = self.vm.page_ref(frame) {
                found.frames[found.count] = held.into_frame();
                found.count += 1;
            }
        }
        part.range().end
    }

    /// Calls `then` with `range` locked, if all of it is mapped and passes `check`.
    #[inline]
    fn mapped<R>(
        &self,
        range: VaRange,
        mut check: impl FnMut(&Mapped<'_, S>) -> Result<(), Error>,
        then: impl FnOnce(&mut Locked<'_, S>) -> R,
    ) -> Result<R, Error> {
        let _op = self.begin(Op::Look);
        let place = self.pmap.tree.find(range.start);
        place.refuse_hole(range)?;
        let _pmap = self.pmap.lock_tables();
        let mut locked = Locked::none(&self.pmap.tree);
        locked.lock(self.pmap.tree.at(place, range))?;
        locked.parts().visit(|mapped| check(&mapped))?;
        Ok(then(&mut locked))
    }

    /// The place of the page at `address`, if something is mapped there but no entry maps the page.
    fn whereabouts(&self, address: usize) -> Option<Whereabouts<S>> {
        let page = VaRange::sized(address, PAGE_SIZE);
        let mut locked = self.pmap.tree.over(page).lock().ok()?;
        let part = locked.parts().next()?;
        let attached = part.first()?.attachment;
        match self.pmap.entry_at(&part) {
            Entry::Page { .. } => None,
            Entry::Swapped(slot) => Some(Whereabouts::Swapped(slot)),
            Entry::Empty => Some(attached.map_or(Whereabouts::Nowhere, |to| {
                Whereabouts::Object(to.clone(), to.index(address))
            })),
        }
    }
}

/// The place of a page that no entry maps.
enum Whereabouts<S: System> {
    Nowhere,
    Swapped(u32),
    Object(Attached<S>, u64),
}

fn refuse_locked<S: System>(mapped: &Mapped<'_, S>) -> Result<(), Error> {
    if mapped.flags.has(Flags::LOCKED) {
        invalid("the memory is locked")
    } else {
        Ok(())
    }
}

fn invalid<T>(reason: &'static str) -> Result<T, Error> {
    Err(Error::Invalid { reason })
}
