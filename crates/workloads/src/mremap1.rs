//! mremap1: grow 1 MiB of touched memory to 2 MiB where it has no room, and cut it back.
//!
//! The half after it has no rights, so growing must move the 256 pages. Cutting back revokes the
//! rights of the new half, which is in the way of the next growth, and unmaps the half left behind,
//! so no address is freed that another task might get. An iteration is the mremap, and that
//! mprotect and munmap of untouched memory, which take little time in comparison.

use crate::steps::expect_byte;
use crate::{Backing, Call, Counter, Error, Feature, Needs, Prot, System, Workload};

/// Bytes that move.
const LEN: usize = 1 << 20;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "mremap1",
    description: "Anonymous memory mremap of 1MB to 2MB, moved",
    unit: "moves",
    needs: Needs {
        protect: true,
        memory: LEN,
        features: &[Feature::Remap],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Mremap1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let mut start = system.map(2 * LEN, Prot::ReadWrite, Backing::Anonymous)?;
    let result = keep_moving(system, tick, &mut start);
    let unmapped = system.unmap(start, 2 * LEN);
    result?; // the first error is the cause
    unmapped
}

/// Moves the memory at `start`, which always points to it and the half after it.
fn keep_moving<S: System>(system: &mut S, tick: &Counter, start: &mut usize) -> Result<(), Error> {
    let page = system.page_size();
    let value = |number: usize| (number % 255) as u8 + 1; // never 0, the content of a lost page
    system.protect(*start + LEN, LEN, Prot::None)?;
    for number in 0..LEN / page {
        system.write(*start + number * page, value(number))?;
    }
    for number in (0..LEN / page).cycle() {
        let old = *start;
        *start = system.remap(old, LEN, 2 * LEN)?;
        Error::unless(Call::Remap, u64::from(*start == old), 0)?; // not over the half after it
        system.unmap(old + LEN, LEN)?;
        system.protect(*start + LEN, LEN, Prot::None)?;
        expect_byte(system, *start + number * page, value(number))?;
        if !tick.add(1) {
            break;
        }
    }
    Ok(())
}
