//! The memory that a fault gets before it locks anything.

use crate::error::{Error, Resource};
use crate::flags::Flags;
use crate::frames::Content;
use crate::object::{Attached, PageRef, Pattern};
use crate::system::System;
use crate::tree::{Likely, Slot};
use crate::vm::Vm;
use core::mem;
use machine::{Access, Frame};

/// A need of a fault.
pub(super) enum Need<S: System> {
    /// A page of zeroes.
    Zeroes,
    /// This page of an object, in memory.
    Object(Attached<S>, u64, Pattern),
    /// The content of this slot of the swap space.
    Slot(u32, Pattern),
    /// Only another look: something changed meanwhile.
    Nothing,
}

/// A frame that a fault has got, and that no other task knows.
#[derive(Clone, Copy)]
pub(super) enum Got {
    /// It has not tried to allocate one.
    Nothing,
    /// There was no free frame.
    Failed,
    /// A page of zeroes.
    Zeroes(Frame),
    /// Any content.
    Any(Frame),
}

/// Says if pages may be read ahead. If memory is short they would soon be reclaimed again, and the
/// needed page with them.
#[derive(Clone, Copy)]
pub(super) enum ReadAhead {
    Allowed,
    Denied,
}

/// The memory that a fault has got; unneeded memory is freed.
pub(super) struct Supply<'a, S: System> {
    vm: &'a Vm<S>,
    ahead: ReadAhead,
    got: Got,
    /// The content of a slot of the swap space.
    swapped: Option<(u32, PageRef<'a, S>)>,
    /// An object's page that stays in memory for the next look.
    kept: Option<PageRef<'a, S>>,
}

impl<'a, S: System> Supply<'a, S> {
    #[inline]
    pub(super) fn new(vm: &'a Vm<S>, ahead: ReadAhead, got: Got) -> Self {
        Supply {
            vm,
            ahead,
            got,
            swapped: None,
            kept: None,
        }
    }

    /// Gets the frame that a first touch in `slot` probably needs, judged without its lock. A wrong
    /// guess costs another look. A lack of memory is no error here, since the fault may need none.
    #[inline]
    pub(super) fn guess(&mut self, slot: &Slot<S>, access: Access) {
        let content = match slot.likely() {
            Likely::Zeroes => Content::Zeroed,
            // A private store goes to a copy.
            Likely::Object if access == Access::Write => Content::Any,
            Likely::Object | Likely::Other => return,
        };
        if self.frame(content).is_err() {
            self.got = Got::Failed;
        }
    }

    /// Meets the need. May sleep.
    pub(super) fn get(&mut self, need: Need<S>) -> Result<(), Error> {
        match need {
            Need::Zeroes => self.frame(Content::Zeroed),
            Need::Object(attached, index, pattern) => {
                let pattern = match self.ahead {
                    ReadAhead::Allowed => pattern,
                    ReadAhead::Denied => Pattern::Random,
                };
                let page = attached.object().page(index, pattern)?;
                self.kept = Some(PageRef::new(self.vm, page.into_frame()));
                Ok(())
            }
            Need::Slot(slot, pattern) => {
                self.swapped = self.vm.swap_in(slot, pattern)?.map(|page| (slot, page));
                Ok(())
            }
            Need::Nothing => Ok(()),
        }
    }

    /// Returns true if there is a page of zeroes; an error if none could be allocated.
    #[inline]
    pub(super) fn has_zeroes(&self) -> Result<bool, Error> {
        match self.got {
            Got::Failed => Err(Error::OutOfMemory(Resource::Frames)),
            Got::Zeroes(_) => Ok(true),
            Got::Nothing | Got::Any(_) => Ok(false),
        }
    }

    /// A frame to copy to, which is the caller's now. Never sleeps.
    pub(super) fn room(&mut self) -> Result<Frame, Error> {
        match self.take_frame() {
            Some(frame) => Ok(frame),
            None => self.vm.allocate_for_page(Content::Any),
        }
    }

    /// The frame, which is the caller's now.
    #[inline]
    pub(super) fn take_frame(&mut self) -> Option<Frame> {
        match mem::replace(&mut self.got, Got::Nothing) {
            Got::Zeroes(frame) | Got::Any(frame) => Some(frame),
            Got::Nothing | Got::Failed => None,
        }
    }

    /// The content of `slot`, if it was paged in.
    pub(super) fn take_swapped(&mut self, slot: u32) -> Option<PageRef<'a, S>> {
        let (_, page) = self.swapped.take_if(|(of, _)| *of == slot)?;
        Some(page)
    }

    #[inline]
    fn frame(&mut self, content: Content) -> Result<(), Error> {
        self.give_back();
        let frame = self.vm.allocate_for_page(content)?;
        self.got = match content {
            Content::Zeroed => Got::Zeroes(frame),
            Content::Any => Got::Any(frame),
        };
        Ok(())
    }

    #[inline]
    fn give_back(&mut self) {
        match mem::replace(&mut self.got, Got::Nothing) {
            Got::Zeroes(frame) => self.vm.free_page(frame, Content::Zeroed),
            Got::Any(frame) => self.vm.free_page(frame, Content::Any),
            Got::Nothing | Got::Failed => {}
        }
    }
}

impl<S: System> Drop for Supply<'_, S> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The read-ahead of memory mapped with `flags`.
pub(super) fn pattern(flags: Flags) -> Pattern {
    if flags.has(Flags::RANDOM) {
        Pattern::Random
    } else if flags.has(Flags::SEQUENTIAL) {
        Pattern::Sequential
    } else {
        Pattern::Normal
    }
}
