//! tlb_flush1: write a page of a private file mapping, drop it, read it back.
//!
//! Dropping the page frees the copy, so it must be flushed from the TLBs of all CPUs that run the
//! address space; the following read finds the file's 0.

use crate::steps::{expect_byte, on_each_page};
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "tlb_flush1",
    description: "TLB flush of separated file private mapping",
    unit: "flushes",
    needs: Needs {
        files: true,
        discard: true,
        memory: SIZE,
        ..Needs::NOTHING
    },
    body: crate::Body::TlbFlush1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let file = system.file(SIZE)?;
    let page = system.page_size();
    let backing = Backing::PrivateFile(&file);
    on_each_page(system, tick, backing, |system, address| {
        system.write(address, 1)?;
        system.discard(address, page)?;
        expect_byte(system, address, 0)
    })
}
