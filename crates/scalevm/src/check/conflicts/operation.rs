//! The operations, and what must be so before and after each.

use machine::{PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::{Error, HEAP_START, Policies, Prot, Space};

/// What a CPU does to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Maps a region.
    Map,
    /// Unmaps a region with pages in it.
    Unmap,
    /// Takes the right to write from a region with pages in it.
    Protect,
    /// Writes to pages for the first time.
    Fault,
    /// Drops pages.
    Discard,
    /// Moves the heap's end up and writes there.
    Brk,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 6] = [
        Operation::Map,
        Operation::Unmap,
        Operation::Protect,
        Operation::Fault,
        Operation::Discard,
        Operation::Brk,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Map => "map",
            Operation::Unmap => "unmap",
            Operation::Protect => "protect",
            Operation::Fault => "fault",
            Operation::Discard => "discard",
            Operation::Brk => "brk",
        }
    }
}

/// Where regions lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where the VM puts them.
    Allocated,
    /// Side by side.
    Fixed,
}

impl Placement {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Allocated => "allocated",
            Placement::Fixed => "neighbours",
        }
    }
}

/// Bytes in a region.
const REGION: usize = 2 << 20;
/// Where fixed regions begin.
const FIXED: usize = 1 << 42;
/// Pages that are written in each region.
const PAGES: usize = 4;

/// One CPU's work in its region.
pub struct Worker<P: Policies<Sim>> {
    operation: Operation,
    space: Arc<Space<Sim, P>>,
    placement: Placement,
    /// Where its region is, or was last.
    region: VaRange,
}

impl<P: Policies<Sim>> Worker<P> {
    /// Worker `index`, in `space`.
    pub fn new(
        operation: Operation,
        space: Arc<Space<Sim, P>>,
        placement: Placement,
        index: usize,
    ) -> Self {
        Worker {
            operation,
            space,
            placement,
            region: VaRange::sized(FIXED + index * REGION, REGION),
        }
    }

    /// Makes the calling CPU run in the worker's space.
    pub fn activate(&self) {
        self.space.activate();
    }

    /// All once, from the beginning to the end.
    pub fn cycle(&mut self) -> Result<(), Error> {
        self.prepare()?;
        self.perform()?;
        self.undo()
    }

    /// Makes what the operation needs.
    pub fn prepare(&mut self) -> Result<(), Error> {
        match self.operation {
            Operation::Map | Operation::Brk => Ok(()),
            Operation::Fault => self.map(),
            Operation::Unmap | Operation::Protect | Operation::Discard => {
                self.map()?;
                self.write(self.region.start)
            }
        }
    }

    /// The operation.
    pub fn perform(&mut self) -> Result<(), Error> {
        match self.operation {
            Operation::Map => self.map(),
            Operation::Unmap => self.space.unmap(self.region),
            Operation::Protect => self.space.protect(self.region, Prot::READ),
            Operation::Fault => self.write(self.region.start),
            Operation::Discard => self.space.discard(self.region),
            Operation::Brk => {
                self.space.set_break(HEAP_START + PAGES * PAGE_SIZE)?;
                self.write(HEAP_START)
            }
        }
    }

    /// Makes all as it was before.
    pub fn undo(&mut self) -> Result<(), Error> {
        match self.operation {
            Operation::Unmap => Ok(()),
            Operation::Brk => self.space.set_break(HEAP_START),
            _ => self.space.unmap(self.region),
        }
    }

    fn map(&mut self) -> Result<(), Error> {
        match self.placement {
            Placement::Fixed => self.space.map_fixed(self.region, Prot::READ_WRITE),
            Placement::Allocated => {
                let at = self.space.map(REGION, Prot::READ_WRITE)?;
                self.region = VaRange::sized(at, REGION);
                Ok(())
            }
        }
    }

    fn write(&self, from: usize) -> Result<(), Error> {
        let mut pages = (from..from + PAGES * PAGE_SIZE).step_by(PAGE_SIZE);
        pages.try_for_each(|page| self.space.store(page, 1))
    }
}
