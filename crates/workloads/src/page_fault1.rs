//! page_fault1: write each page of fresh anonymous memory once.

use crate::steps::fault_each_page;
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "page_fault1",
    description: "Anonymous memory page fault",
    unit: "page faults",
    needs: Needs {
        memory: SIZE,
        ..Needs::NOTHING
    },
    size: SIZE,
    body: crate::Body::PageFault1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter, size: usize) -> Result<(), Error> {
    fault_each_page(system, tick, size, Backing::Anonymous)
}
