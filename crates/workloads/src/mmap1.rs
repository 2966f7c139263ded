//! mmap1: map and unmap anonymous memory without touching it.
//!
//! The subject of case study 000: an munmap of pages that were never there still goes through the
//! pmap's delayed invalidation.

use crate::steps::with_mapping;
use crate::{Backing, Counter, Error, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "mmap1",
    description: "Anonymous memory mmap/munmap of 128MB",
    unit: "mappings",
    needs: Needs::NOTHING,
    size: SIZE,
    body: crate::Body::Mmap1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter, size: usize) -> Result<(), Error> {
    loop {
        with_mapping(system, size, Backing::Anonymous, |_, _| Ok(()))?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
