//! malloc1: allocate and free 128 MiB by the C library's `malloc`.
//!
//! An allocation of that size is a mapping of its own, one page longer, whose first page gets the
//! allocator's header; `free` unmaps it. That is what a task of a system without a C library does
//! here.

use crate::steps::with_mapping;
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "malloc1",
    description: "malloc/free of 128MB",
    unit: "allocations",
    needs: Needs {
        memory: 4096,
        ..Needs::NOTHING
    },
    size: SIZE,
    body: crate::Body::Malloc1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter, size: usize) -> Result<(), Error> {
    let size = size + system.page_size();
    loop {
        with_mapping(system, size, Backing::Anonymous, |system, start| {
            system.write(start, 1)
        })?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
