//! tlb_flush1: write a page of a private file mapping, drop it, read it back.
//!
//! Dropping the page takes the copy away, so it must be flushed from the TLBs of
//! all CPUs that run the address space; what is read afterwards is the file's 0.

use crate::steps::with_mapping;
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
    loop {
        let backing = Backing::PrivateFile(&file);
        let go_on = with_mapping(system, SIZE, backing, |system, start| {
            for address in (start..start + SIZE).step_by(page) {
                system.write(address, 1)?;
                system.discard(address, page)?;
                let found = system.read(address)?;
                if found != 0 {
                    return Err(Error::Wrong {
                        address,
                        found,
                        expected: 0,
                    });
                }
                if !tick.add(1) {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        if !go_on {
            return Ok(());
        }
    }
}
