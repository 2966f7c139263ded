//! The heap's end.

use super::map::New;
use super::{HEAP_START, MAP_START, Space, whole_pages};
use crate::error::Error;
use crate::policy::{MapLocking, Policies};
use crate::prot::Prot;
use crate::tree::Flags;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// The heap's end, in bytes.
    pub fn current_break(&self) -> usize {
        *self.heap_end.lock()
    }

    /// Moves the heap's end; pages above the new one go. The heap's pages are as any
    /// other's, so faults there need not know its end.
    pub fn set_break(&self, end: usize) -> Result<(), Error> {
        if !(HEAP_START..MAP_START).contains(&end) {
            let reason = "the break is outside of the heap";
            return Err(Error::Invalid { reason });
        }
        let _write = self.pmap.locking.write();
        let mut heap_end = self.heap_end.lock();
        let old = whole_pages(*heap_end).unwrap_or(*heap_end);
        let new = whole_pages(end).unwrap_or(end);
        if new > old {
            self.grow_heap(VaRange {
                start: old,
                end: new,
            })?;
        } else if new < old {
            let shrunk = VaRange {
                start: new,
                end: old,
            };
            self.replace(shrunk, None)?;
            self.left(shrunk);
        }
        *heap_end = end;
        Ok(())
    }

    /// Maps `grown`, which must be free.
    fn grow_heap(&self, grown: VaRange) -> Result<(), Error> {
        let flags = Flags::new(Prot::READ_WRITE).charged();
        self.charging(grown.len(), flags, || {
            let bytes = grown.len();
            let object = None;
            let taken = self.take(grown, &New { flags, object })?;
            taken.then_some(()).ok_or(Error::NoAddresses { bytes })
        })
    }
}
