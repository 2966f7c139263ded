//! mmap2: map and unmap a private mapping of the task's own file, untouched.

use crate::steps::with_mapping;
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "mmap2",
    description: "Separate file mmap/munmap of 128MB",
    unit: "mappings",
    needs: Needs {
        files: true,
        ..Needs::NOTHING
    },
    size: SIZE,
    body: crate::Body::Mmap2,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter, size: usize) -> Result<(), Error> {
    let file = system.file(size)?;
    loop {
        with_mapping(system, size, Backing::PrivateFile(&file), |_, _| Ok(()))?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
