//! The preparation and the undoing of each operation.

use super::{Operation, Placement};
use machine::{PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::pager::MemoryPager;
use vm::{Advice, At, Bring, Error, HEAP_START, Move, Prot, Request, Space, System, Vm};

/// Bytes in a region.
const REGION: usize = 2 << 20;
/// Where fixed regions begin.
const FIXED: usize = 1 << 42;
/// Pages that are written in each region.
const PAGES: usize = 4;
/// Bytes in a cache line.
const LINE: usize = 64;

/// A handle of the file that both CPUs use. Each process has one of its own, like a descriptor.
pub type File<P> = ObjectRef<P>;

/// One CPU's work in its region.
pub struct Worker<S: System<Machine = Sim>> {
    operation: Operation,
    space: Arc<Space<S>>,
    placement: Placement,
    index: usize,
    /// The region of the file that the CPU uses: its own, or the one that both use.
    part: Part,
    /// Where the CPU's region is, or was last.
    region: VaRange,
    /// A range that the CPU has left mapped elsewhere.
    left: Option<VaRange>,
    file: File<S>,
    /// A handle that [`Operation::Open`] has opened.
    opened: Option<File<S>>,
    child: Option<Space<S>>,
}

/// The region of the file that a CPU uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The region with the CPU's number.
    Own,
    /// The first region, which the other CPU also uses; an operation on a whole process finds it
    /// mapped.
    Same,
}

impl<S: System<Machine = Sim>> Worker<S> {
    /// A file for two workers.
    pub fn file(vm: &Arc<Vm<S>>) -> Result<File<S>, Error> {
        let store = Arc::new(MemoryPager::new());
        Object::file(vm, store, 2 * REGION as u64)
    }

    /// Worker `index`, in `space`.
    pub fn new(
        operation: Operation,
        space: Arc<Space<S>>,
        placement: Placement,
        index: usize,
        part: Part,
        file: File<S>,
    ) -> Self {
        Worker {
            operation,
            space,
            placement,
            index,
            part,
            region: VaRange::sized(FIXED + index * REGION, REGION),
            left: None,
            file,
            opened: None,
            child: None,
        }
    }

    /// Makes the calling CPU run in the worker's space.
    pub fn activate(&self) {
        self.space.activate();
    }

    /// Prepares, performs and undoes the operation once.
    pub fn cycle(&mut self) -> Result<(), Error> {
        self.prepare()?;
        self.perform()?;
        self.undo()
    }

    /// Prepares the operation.
    pub fn prepare(&mut self) -> Result<(), Error> {
        match self.operation {
            Operation::Map | Operation::Brk | Operation::MapFile | Operation::Open => return Ok(()),
            Operation::Close => {
                self.opened = Some(self.file.clone());
                return Ok(());
            }
            Operation::Fault => return self.map(),
            Operation::ReadFile | Operation::WriteFile => return self.map_file(true),
            Operation::CopyFile => return self.map_file(false),
            Operation::UnmapFile | Operation::Sync => {
                self.map_file(true)?;
                return self.touch();
            }
            Operation::LoadFile => {
                self.map_file(true)?;
                self.read()?;
                return self.advise(Advice::PageOut);
            }
            _ if self.part == Part::Same => self.map_file(true)?,
            _ => self.map()?,
        }
        self.touch()?;
        match self.operation {
            Operation::PageIn => self.advise(Advice::PageOut),
            Operation::Unlock => self.space.lock(self.pages(), Bring::Now),
            Operation::Grow => self.space.unmap(self.half()),
            Operation::Copy => {
                self.child = Some(self.space.fork()?);
                Ok(())
            }
            Operation::Exit => {
                let child = self.space.fork()?;
                child.activate();
                self.child = Some(child);
                self.touch()?;
                self.activate();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Performs the operation.
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
            Operation::Lock => self.space.lock(self.pages(), Bring::Now),
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
            Operation::Scan => self.space.scan(0, usize::MAX).map(drop),
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
            Operation::Open => {
                self.opened = Some(self.file.clone());
                Ok(())
            }
            Operation::Close => {
                self.opened = None;
                Ok(())
            }
            Operation::Tasks(_) => Ok(()),
        }
    }

    /// Restores the state before the operation.
    pub fn undo(&mut self) -> Result<(), Error> {
        self.child = None;
        self.opened = None;
        if let Some(left) = self.left.take() {
            self.space.unmap(left)?;
        }
        match self.operation {
            Operation::Brk => self.space.set_break(HEAP_START),
            Operation::Open | Operation::Close => Ok(()),
            _ => self.space.unmap(self.region),
        }
    }

    fn map(&mut self) -> Result<(), Error> {
        let at = self.map_as(Request::anonymous(REGION, Prot::READ_WRITE))?;
        self.region = VaRange::sized(at, REGION);
        Ok(())
    }

    fn map_file(&mut self, shared: bool) -> Result<(), Error> {
        let part = match self.part {
            Part::Own => self.index,
            Part::Same => 0,
        };
        let offset = (part * REGION) as u64;
        let request = Request::object(&self.file, offset, REGION, Prot::READ_WRITE)?;
        let at = self.map_as(if shared { request.shared() } else { request })?;
        self.region = VaRange::sized(at, REGION);
        Ok(())
    }

    /// Maps the region as its placement requires; returns its address.
    fn map_as(&self, request: Request<'_, S>) -> Result<usize, Error> {
        let at = match self.placement {
            Placement::Fixed => At::Fixed(self.region.start),
            Placement::Allocated => At::Anywhere,
        };
        self.space.map_as(&request.at(at))
    }

    /// Moves the region back and forth between two places, or to where the VM puts it; then the old
    /// place stays mapped, without pages.
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

    /// Brings the pages into memory: reads those that the other CPU also uses, and writes its own.
    fn touch(&self) -> Result<(), Error> {
        match self.part {
            Part::Own => self.write(),
            Part::Same => self.read(),
        }
    }

    fn read(&self) -> Result<(), Error> {
        let space = self.runs_in();
        let mut words = self.words(self.region.start);
        words.try_for_each(|word| space.load(word).map(drop))
    }

    fn write(&self) -> Result<(), Error> {
        self.write_at(self.region.start)
    }

    fn write_at(&self, from: usize) -> Result<(), Error> {
        let space = self.runs_in();
        let mut words = self.words(from);
        words.try_for_each(|word| space.store(word, 1))
    }

    /// The space that this CPU runs in: the child's while it is to exit.
    fn runs_in(&self) -> &Space<S> {
        let child = self.child.as_ref();
        let exiting = child.filter(|_| self.operation == Operation::Exit);
        exiting.unwrap_or(&self.space)
    }

    /// A word in each of the pages from `from` on, in a cache line of this CPU's own.
    fn words(&self, from: usize) -> impl Iterator<Item = usize> + use<S> {
        let from = from + self.index * LINE;
        (from..from + PAGES * PAGE_SIZE).step_by(PAGE_SIZE)
    }
}
