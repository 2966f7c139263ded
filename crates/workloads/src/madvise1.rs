//! madvise1: write a page of anonymous memory and drop it, page after page.
//!
//! One page per call, so that the cost of freeing many pages does not hide the cost of the call
//! (the lock, the look-up, the flush). An iteration is a fault and a drop; less page_fault1's
//! fault, it is the drop.

use crate::steps::on_each_page;
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "madvise1",
    description: "Anonymous memory madvise(MADV_DONTNEED) of one touched page",
    unit: "pages dropped",
    needs: Needs {
        discard: true,
        memory: SIZE,
        ..Needs::NOTHING
    },
    size: SIZE,
    body: crate::Body::Madvise1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter, size: usize) -> Result<(), Error> {
    let page = system.page_size();
    on_each_page(system, tick, size, Backing::Anonymous, |system, address| {
        system.write(address, 1)?;
        system.discard(address, page)
    })
}
