//! The stores in which the VM's machines keep files and pages that have no room in memory.

use super::process::failed;
use hosted::{FilePager, Hosted};
use machine::{PAGE_SIZE, Pager, PagerError, Platform, Truncate};
use sim::{Disk, Sim};
use std::io;
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{System, Vm};
use workloads::{Call, Error, Feature, Files, Workload};

/// The files of programs. By an `Arc`, since handles of an object are counted on a line that is the
/// machine's.
pub type Inputs<S> = Arc<Files<ObjectRef<S>>>;

/// A machine with stores of pages.
pub trait Stores: Platform {
    /// An empty file that no other task has.
    fn file() -> Result<Arc<dyn Truncate<Self>>, PagerError>;

    /// An empty swap space.
    fn swap() -> Result<Box<dyn Pager<Self>>, PagerError>;
}

impl Stores for Hosted {
    /// A real file, in the directory for temporary ones.
    fn file() -> Result<Arc<dyn Truncate<Self>>, PagerError> {
        Ok(Arc::new(temporary()?))
    }

    fn swap() -> Result<Box<dyn Pager<Self>>, PagerError> {
        Ok(Box::new(temporary()?))
    }
}

fn temporary() -> Result<FilePager, PagerError> {
    FilePager::temporary().map_err(|error: io::Error| PagerError {
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    })
}

/// Nanoseconds that a call of the simulated disk takes, and that each of its pages adds: those of a
/// common solid-state disk, an estimate that is not fitted to any.
const LATENCY: u64 = 80_000;
const PAGE: u64 = 2_000;

impl Stores for Sim {
    /// A file that lies in memory, as on tmpfs.
    fn file() -> Result<Arc<dyn Truncate<Self>>, PagerError> {
        Ok(Arc::new(MemoryPager::new()))
    }

    fn swap() -> Result<Box<dyn Pager<Self>>, PagerError> {
        Ok(Box::new(Disk::new(MemoryPager::new(), LATENCY, PAGE)))
    }
}

/// The files of programs.
pub fn inputs<S: System<Machine: Stores>>(vm: &Arc<Vm<S>>) -> Result<Inputs<S>, Error> {
    let files = Files::try_new(|input| {
        let file = file(vm, input.size())?;
        for page in 0..input.size() / PAGE_SIZE {
            let written = file.write((page * PAGE_SIZE) as u64, &[input.byte(page)]);
            written.map_err(failed(Call::File))?;
        }
        Ok(file)
    });
    files.map(Arc::new)
}

/// A file of `len` zero bytes that no other task has.
pub fn file<S: System<Machine: Stores>>(
    vm: &Arc<Vm<S>>,
    len: usize,
) -> Result<ObjectRef<S>, Error> {
    let store = S::Machine::file().map_err(|error| Error::Failed(Call::File, error.errno))?;
    Object::file(vm, store, len as u64).map_err(failed(Call::File))
}

/// Swap space for `tasks` tasks of a workload, if it uses any.
pub fn swap_space<M: Stores>(
    machine: &M,
    workload: &Workload,
    tasks: usize,
) -> io::Result<Option<SwapSpace<M>>> {
    if !workload.needs.features.contains(&Feature::PageOut) {
        return Ok(None);
    }
    let pages = super::swap_per_task(workload) * tasks as u64;
    let slots = u32::try_from(pages).unwrap_or(u32::MAX);
    let pager = M::swap().map_err(io::Error::other)?;
    let space = SwapSpace::new(machine.cpus(), pager, slots).map_err(io::Error::other)?;
    Ok(Some(space))
}
