//! mprotect1: make a page read-only and writable again, page after page.
//!
//! The page is written before, so there is an entry to change and a translation to flush; that
//! write faults where rights return lazily. On most systems both calls also split the mapping in
//! three or join it again.

use crate::steps::with_mapping;
use crate::{Backing, Counter, Error, Needs, Prot, System, Workload};

/// Bytes of the mapping.
const LEN: usize = 2 << 20;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "mprotect1",
    description: "Anonymous memory mprotect of one page, read-only and back",
    unit: "mprotect calls",
    needs: Needs {
        protect: true,
        memory: LEN,
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Mprotect1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let page = system.page_size();
    with_mapping(system, LEN, Backing::Anonymous, |system, start| {
        for address in (start..start + LEN).step_by(page).cycle() {
            system.write(address, 1)?;
            system.protect(address, page, Prot::Read)?;
            system.protect(address, page, Prot::ReadWrite)?;
            if !tick.add(2) {
                break;
            }
        }
        Ok(())
    })
}
