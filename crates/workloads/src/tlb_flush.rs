//! tlb_flush1, tlb_flush2: write a page of a private mapping, drop it, read it back.
//!
//! Dropping the page frees it, so it must be flushed from the TLBs of all CPUs that run the
//! address space; the following read finds the file's 0, or that of new memory.

use crate::steps::{expect_byte, on_each_page};
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

/// Bytes that tlb_flush2 maps.
const SMALL: usize = 1 << 20;

pub(crate) const FILE: Workload = Workload {
    name: "tlb_flush1",
    description: "TLB flush of separated file private mapping",
    unit: "flushes",
    needs: Needs {
        files: true,
        discard: true,
        memory: SIZE,
        ..Needs::NOTHING
    },
    size: SIZE,
    body: crate::Body::TlbFlush1,
};

pub(crate) const ANONYMOUS: Workload = Workload {
    name: "tlb_flush2",
    description: "TLB flush of anonymous memory private mapping",
    unit: "flushes",
    needs: Needs {
        discard: true,
        memory: SMALL,
        ..Needs::NOTHING
    },
    size: SMALL,
    body: crate::Body::TlbFlush2,
};

pub(crate) fn run_file<S: System>(
    system: &mut S,
    tick: &Counter,
    size: usize,
) -> Result<(), Error> {
    let file = system.file(size)?;
    flush_each_page(system, tick, size, Backing::PrivateFile(&file))
}

pub(crate) fn run_anonymous<S: System>(
    system: &mut S,
    tick: &Counter,
    size: usize,
) -> Result<(), Error> {
    flush_each_page(system, tick, size, Backing::Anonymous)
}

fn flush_each_page<S: System>(
    system: &mut S,
    tick: &Counter,
    len: usize,
    backing: Backing<'_, S::File>,
) -> Result<(), Error> {
    let page = system.page_size();
    on_each_page(system, tick, len, backing, |system, address| {
        system.write(address, 1)?;
        system.discard(address, page)?;
        expect_byte(system, address, 0)
    })
}
