//! A second mapping of shared memory (`mremap` of no bytes).

use super::Space;
use super::gate::Guard;
use super::remap::Move;
use crate::error::Error;
use crate::flags::Flags;
use crate::system::System;
use crate::tree::Part;
use crate::usage::Usage;
use machine::{PAGE_SIZE, VaRange};

impl<S: System> Space<S> {
    /// Maps `bytes` of the shared memory that is mapped from `at` on at another place, too.
    pub(super) fn duplicate(&self, at: usize, bytes: usize, place: Move) -> Result<usize, Error> {
        let page = VaRange::sized(at, PAGE_SIZE);
        let (_, attributes) = self.lock_one(page, None)?;
        if !attributes.flags.has(Flags::SHARED) {
            let reason = "only shared memory can be mapped a second time";
            return Err(Error::Invalid { reason });
        }
        match place {
            // The second mapping would replace the first.
            Move::To(start) if start == at => Err(Error::NotOne { address: at }),
            Move::To(start) => {
                let to = Self::in_pages_at(start, bytes)?;
                loop {
                    let place = self.pmap.tree.find(to.start);
                    self.clear(place, to, &mut Guard::<S>::default())?;
                    // Another task may map something there before it is locked again.
                    if self.duplicate_to(page, to)? {
                        return Ok(start);
                    }
                }
            }
            Move::IfNeeded => self.place(bytes, &mut |_, to| self.duplicate_to(page, to)),
            // Only these make a mapping at another place and leave the first.
            Move::Never | Move::Leaving | Move::LeavingTo(_) => Err(Error::NoAddresses { bytes }),
        }
    }

    /// Maps the memory that is mapped from `page` on at `to`, too, if that is free.
    fn duplicate_to(&self, page: VaRange, to: VaRange) -> Result<bool, Error> {
        let (two, attributes) = self.lock_one(page, Some(to))?;
        if !Part::make_room_if_all_free(two.parts_of(to), 1)? {
            return Ok(false);
        }
        let second = self.moved(&attributes, page.start, to)?;
        let added = Usage::of(second.flags, to.pages());
        self.rules(&two).count_new(Usage::NONE, added)?;
        for mut part in two.parts_of(to) {
            part.set(Some(second.clone()));
        }
        drop(two);
        self.report_like(&mut Guard::<S>::default(), to, &second);
        Ok(true)
    }
}
