//! fragment: memory in many regions, and a reverse look-up of one of its pages.
//!
//! Of every eight pages of a mapping the last four are unmapped, and one of the remaining ones has
//! been written. Then the first page is sent to swap space: for that the kernel looks for the
//! mappings that have it. Where all regions are on one list, the walk is as long as the list. In
//! case study 004 the mapping has 10 GB, which become 327,680 regions; here an iteration has 512,
//! so that it takes milliseconds.

use crate::steps::expect_byte;
use crate::{Backing, Counter, Error, Feature, Needs, Prot, System, Workload};

/// Regions of an iteration.
const REGIONS: usize = 512;
/// Pages from one region to the next, and pages of it that stay mapped.
const SPACING: usize = 8;
const KEPT: usize = 4;
/// The byte written to a region.
const BYTE: u8 = 1;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "fragment",
    description: "Holes in anonymous memory: munmap of 4 pages in every 8, and a reverse walk",
    unit: "mappings",
    needs: Needs {
        memory: REGIONS * SPACING * 4096,
        features: &[Feature::PageOut],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Fragment,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let page = system.page_size();
    loop {
        let start = make(system, REGIONS)?;
        let found = system
            .page_out(start, page)
            .and_then(|()| expect_byte(system, start, BYTE));
        let unmapped = clear(system, start, REGIONS);
        found?; // the first error is the cause
        unmapped?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}

/// Maps `regions` regions of four pages, eight pages from each other, the first page of each
/// written. Returns the start of the first.
///
/// # Errors
/// Those of the call that fails; then nothing stays mapped.
fn make<S: System>(system: &mut S, regions: usize) -> Result<usize, Error> {
    let page = system.page_size();
    let start = system.map(
        regions * SPACING * page,
        Prot::ReadWrite,
        Backing::Anonymous,
    )?;
    let made = (0..regions)
        .map(|region| start + region * SPACING * page)
        .try_for_each(|region| {
            system.write(region, BYTE)?;
            system.unmap(region + KEPT * page, (SPACING - KEPT) * page)
        });
    if let Err(error) = made {
        clear(system, start, regions)?;
        return Err(error);
    }
    Ok(start)
}

/// Unmaps the rest of the mapping, holes or not.
fn clear<S: System>(system: &mut S, start: usize, regions: usize) -> Result<(), Error> {
    system.unmap(start, regions * SPACING * system.page_size())
}
