//! What must be so before and after each operation.

use super::{Operation, Placement};
use machine::{PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::pager::MemoryPager;
use vm::{Advice, At, Error, HEAP_START, Move, Policies, Prot, Request, Space, Vm};

/// Bytes in a region.
const REGION: usize = 2 << 20;
/// Where fixed regions begin.
const FIXED: usize = 1 << 42;
/// Pages that are written in each region.
const PAGES: usize = 4;

/// The file that both CPUs use, each the region of it that has its number. By an `Arc`, since
/// handles of an object are counted on a line that is the machine's.
pub type File<P> = Arc<ObjectRef<Sim, P>>;

/// One CPU's work in its region.
pub struct Worker<P: Policies<Sim>> {
    operation: Operation,
    space: Arc<Space<Sim, P>>,
    placement: Placement,
    index: usize,
    /// Where its region is, or was last.
    region: VaRange,
    /// What it has left mapped elsewhere.
    left: Option<VaRange>,
    file: File<P>,
    /// A child of the space.
    child: Option<Space<Sim, P>>,
}

impl<P: Policies<Sim>> Worker<P> {
    /// A file for two workers.
    pub fn file(vm: &Arc<Vm<Sim, P>>) -> Result<File<P>, Error> {
        let store = Arc::new(MemoryPager::new());
        Ok(Arc::new(Object::file(vm, store, 2 * REGION as u64)?))
    }

    /// Worker `index`, in `space`.
    pub fn new(
        operation: Operation,
        space: Arc<Space<Sim, P>>,
        placement: Placement,
        index: usize,
        file: File<P>,
    ) -> Self {
        Worker {
            operation,
            space,
            placement,
            index,
            region: VaRange::sized(FIXED + index * REGION, REGION),
            left: None,
            file,
            child: None,
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
            Operation::Map | Operation::Brk | Operation::MapFile => return Ok(()),
            Operation::Fault => return self.map(),
            Operation::ReadFile | Operation::WriteFile => return self.map_file(true),
            Operation::CopyFile => return self.map_file(false),
            Operation::UnmapFile | Operation::Sync => {
                self.map_file(true)?;
                return self.write();
            }
            Operation::LoadFile => {
                self.map_file(true)?;
                self.read()?;
                return self.advise(Advice::PageOut);
            }
            _ => self.map()?,
        }
        self.write()?;
        match self.operation {
            Operation::PageIn => self.advise(Advice::PageOut),
            Operation::Unlock => self.space.lock(self.pages(), false),
            Operation::Grow => self.space.unmap(self.half()),
            Operation::Copy => {
                self.child = Some(self.space.fork()?);
                Ok(())
            }
            Operation::Exit => {
                let child = self.space.fork()?;
                child.activate();
                self.child = Some(child);
                self.write()?;
                self.activate();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The operation.
    pub fn perform(&mut self) -> Result<(), Error> {
        match self.operation {
            Operation::Map => self.map(),
            Operation::Unmap | Operation::UnmapFile => self.space.unmap(self.region),
            Operation::Protect => self.space.protect(self.region, Prot::READ),
            Operation::Fault | Operation::Copy | Operation::WriteFile | Operation::CopyFile => {
                self.write()
            }
            Operation::Discard => self.space.discard(self.region),
            Operation::Cold => self.advise(Advice::Cold),
            Operation::PageOut => self.advise(Advice::PageOut),
            Operation::PageIn | Operation::ReadFile | Operation::LoadFile => self.read(),
            Operation::DontFork => self.advise(Advice::DontFork),
            Operation::Lock => self.space.lock(self.pages(), false),
            Operation::Unlock => self.space.unlock(self.pages()),
            Operation::Grow => {
                let half = VaRange::sized(self.region.start, REGION / 2);
                self.space.remap(half, REGION, Move::Never).map(drop)
            }
            Operation::Move => self.relocate(),
            Operation::Brk => {
                self.space.set_break(HEAP_START + PAGES * PAGE_SIZE)?;
                self.write_at(HEAP_START)
            }
            Operation::MapFile => self.map_file(true),
            Operation::Sync => self.space.sync(self.region),
            Operation::Fork => {
                self.child = Some(self.space.fork()?);
                Ok(())
            }
            Operation::Exec => {
                self.space.exec();
                Ok(())
            }
            Operation::Exit => {
                self.child = None;
                Ok(())
            }
        }
    }

    /// Makes all as it was before.
    pub fn undo(&mut self) -> Result<(), Error> {
        self.child = None;
        if let Some(left) = self.left.take() {
            self.space.unmap(left)?;
        }
        match self.operation {
            Operation::Brk => self.space.set_break(HEAP_START),
            _ => self.space.unmap(self.region),
        }
    }

    fn map(&mut self) -> Result<(), Error> {
        self.map_as(Request::anonymous(REGION, Prot::READ_WRITE))
    }

    fn map_file(&mut self, shared: bool) -> Result<(), Error> {
        let file = self.file.clone();
        let offset = (self.index * REGION) as u64;
        let request = Request::object(&file, offset, REGION, Prot::READ_WRITE)?;
        self.map_as(if shared { request.shared() } else { request })
    }

    fn map_as(&mut self, request: Request<'_, Sim, P>) -> Result<(), Error> {
        let at = match self.placement {
            Placement::Fixed => At::Fixed(self.region.start),
            Placement::Allocated => At::Anywhere,
        };
        let at = self.space.map_as(&request.at(at))?;
        self.region = VaRange::sized(at, REGION);
        Ok(())
    }

    /// Moves the region to and fro between two places, or to where the VM puts it; then its
    /// place stays mapped, and empty.
    fn relocate(&mut self) -> Result<(), Error> {
        let place = match self.placement {
            Placement::Fixed => Move::To(self.region.start ^ FIXED >> 1),
            Placement::Allocated => Move::Leaving,
        };
        let at = self.space.remap(self.region, REGION, place)?;
        let left = std::mem::replace(&mut self.region, VaRange::sized(at, REGION));
        self.left = (place == Move::Leaving).then_some(left);
        Ok(())
    }

    /// The pages that are used.
    fn pages(&self) -> VaRange {
        VaRange::sized(self.region.start, PAGES * PAGE_SIZE)
    }

    /// The half of the region that has no pages.
    fn half(&self) -> VaRange {
        VaRange::sized(self.region.start + REGION / 2, REGION / 2)
    }

    fn advise(&self, advice: Advice) -> Result<(), Error> {
        self.space.advise(self.region, advice)
    }

    fn read(&self) -> Result<(), Error> {
        let pages = self.pages();
        let mut pages = (pages.start..pages.end).step_by(PAGE_SIZE);
        pages.try_for_each(|page| self.space.load(page).map(drop))
    }

    fn write(&self) -> Result<(), Error> {
        self.write_at(self.region.start)
    }

    /// Writes to pages in the space that this CPU runs in.
    fn write_at(&self, from: usize) -> Result<(), Error> {
        let space = self
            .child
            .as_ref()
            .filter(|_| self.operation == Operation::Exit);
        let space = space.unwrap_or(&self.space);
        let mut pages = (from..from + PAGES * PAGE_SIZE).step_by(PAGE_SIZE);
        pages.try_for_each(|page| space.store(page, 1))
    }
}
