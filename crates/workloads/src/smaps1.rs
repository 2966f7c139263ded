//! smaps1: threads that map and unmap memory while another reads `/proc/self/smaps`, as a monitor
//! does.
//!
//! The last thread of a process is the *monitor*: it looks at all mappings of the process and their
//! pages, again and again, a few mappings at a time. The others are *owners*: each has 2 MiB of
//! memory in use, at which the monitor must look page by page, and maps, writes and unmaps more. A
//! process with one thread has no monitor.

use crate::steps::{fill, with_mapping};
use crate::{Backing, Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "smaps1",
    description: "mmap and munmap of 64KB while another thread reads smaps",
    unit: "mappings",
    needs: Needs {
        memory: IN_USE + MAPPED,
        features: &[Feature::Scan, Feature::Neighbours],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Smaps1,
};

/// Bytes that an owner has in use.
const IN_USE: usize = 2 << 20;
/// Bytes that an owner maps and unmaps.
const MAPPED: usize = 64 << 10;

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let threads = system.companions();
    if threads > 1 && system.number() + 1 == threads {
        return watch(system, tick);
    }
    let pages = IN_USE / system.page_size();
    with_mapping(system, IN_USE, Backing::Anonymous, |system, start| {
        fill(system, start, pages, 1)?;
        loop {
            with_mapping(system, MAPPED, Backing::Anonymous, |system, start| {
                system.write(start, 1)
            })?;
            if !tick.add(1) {
                return Ok(());
            }
        }
    })
}

/// Reads all of smaps, over and over; each time counts as one mapping.
fn watch<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    loop {
        while system.scan()? {
            if !tick.add(0) {
                return Ok(());
            }
        }
        if !tick.add(1) {
            return Ok(());
        }
    }
}
