//! page_fault2: copy each page of a private mapping of the task's own file by writing it.

use crate::steps::fault_each_page;
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "page_fault2",
    description: "Separate file private mapping page fault",
    unit: "page faults",
    needs: Needs {
        files: true,
        memory: SIZE,
        ..Needs::NOTHING
    },
    size: SIZE,
    body: crate::Body::PageFault2,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter, size: usize) -> Result<(), Error> {
    let file = system.file(size)?;
    fault_each_page(system, tick, size, Backing::PrivateFile(&file))
}
