//! The heap's end.

use super::map::New;
use super::{HEAP_START, MAP_START, Space, whole_pages};
use crate::error::Error;
use crate::flags::Flags;
use crate::policy::{MapLocking, Policies};
use crate::prot::Prot;
use core::cell::Cell;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// The heap's end, in bytes.
    pub fn current_break(&self) -> usize {
        *self.written.heap_end.read()
    }

    /// Moves the heap's end; pages above the new one go. The heap's pages are as any
    /// other's, so faults there need not know its end.
    pub fn set_break(&self, end: usize) -> Result<(), Error> {
        if !(HEAP_START..MAP_START).contains(&end) {
            let reason = "the break is outside of the heap";
            return Err(Error::Invalid { reason });
        }
        if let Some(grown) = self.vm.with_frames(|| self.move_break(end))? {
            self.populate(grown);
        }
        Ok(())
    }

    /// Moves the heap's end; returns the range it grew by, if that is to be paged in.
    fn move_break(&self, end: usize) -> Result<Option<VaRange>, Error> {
        let _write = self.pmap.locking.write();
        let mut heap_end = self.written.heap_end.write();
        let mut brought = None;
        let old = whole_pages(*heap_end).unwrap_or(*heap_end);
        let new = whole_pages(end).unwrap_or(end);
        if new > old {
            let grown = VaRange {
                start: old,
                end: new,
            };
            let flags = self.grow_heap(grown)?;
            brought = flags.is_brought().then_some(grown);
        } else if new < old {
            let shrunk = VaRange {
                start: new,
                end: old,
            };
            self.give_back(self.pmap.tree.find(shrunk.start), shrunk)?;
        }
        *heap_end = end;
        Ok(brought)
    }

    /// Maps `grown`, which must be free; returns its flags.
    fn grow_heap(&self, grown: VaRange) -> Result<Flags, Error> {
        let flags = Flags::new(Prot::READ_WRITE).charged();
        self.charging(grown.len(), flags, || {
            let bytes = grown.len();
            let new = New {
                flags: Cell::new(flags),
                object: None,
            };
            let taken = self.take(self.pmap.tree.find(grown.start), grown, &new)?;
            if taken {
                self.region_new(grown, &new);
            }
            let flags = taken.then(|| new.flags.get());
            flags.ok_or(Error::NoAddresses { bytes })
        })
    }
}
