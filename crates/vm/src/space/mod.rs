//! An address space: which ranges are mapped, and what a task may do there.
//!
//! The regions are an ordered map under one reader/writer lock: a fault reads, `map`,
//! `unmap`, `protect` and `brk` write. Anonymous private memory, zero until written.

mod access;
mod brk;
mod discard;
mod fault;
mod map;
mod protect;
mod region;
mod unmap;

pub use region::Region;

use crate::error::Error;
use crate::lock::SpaceLock;
use crate::pmap::Pmap;
use crate::policy::Policies;
use crate::vm::Vm;
use alloc::sync::Arc;
use alloc::vec::Vec;
use machine::{PAGE_SIZE, Platform, VaRange, pte};
use region::Regions;

/// The lowest address that is ever mapped.
pub const LOWEST: usize = 1 << 16;
/// The first address that is never mapped.
pub const HIGHEST: usize = pte::USER_END - PAGE_SIZE;
/// Where a space's heap begins.
pub const HEAP_START: usize = 1 << 32;
/// Where `map` begins to look for room.
const MAP_START: usize = 1 << 40;

/// An address space. Dropping it unmaps all.
pub struct Space<M: Platform, P: Policies<M>> {
    vm: Arc<Vm<M, P>>,
    pmap: Arc<Pmap<M, P>>,
    map: SpaceLock<M, Map>,
}

/// What the space's lock protects.
struct Map {
    regions: Regions,
    /// No gap lies between `MAP_START` and here.
    lowest_gap: usize,
    /// The end of the heap.
    break_at: usize,
}

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// An empty space.
    pub fn new(vm: &Arc<Vm<M, P>>) -> Result<Self, Error> {
        Ok(Space {
            vm: vm.clone(),
            pmap: Pmap::new(vm)?,
            map: SpaceLock::<M, _>::new(Map {
                regions: Regions::default(),
                lowest_gap: MAP_START,
                break_at: HEAP_START,
            }),
        })
    }

    /// The VM the space belongs to.
    pub fn vm(&self) -> &Arc<Vm<M, P>> {
        &self.vm
    }

    /// The space as the hardware sees it.
    pub fn pmap(&self) -> &Arc<Pmap<M, P>> {
        &self.pmap
    }

    /// Makes the calling CPU run in this space.
    pub fn activate(&self) {
        self.pmap.activate();
    }

    /// All regions, in order.
    pub fn regions(&self) -> Vec<Region> {
        self.map.read().regions.iter().copied().collect()
    }

    /// `range` with its end rounded up to pages, if a request may name that.
    fn in_pages(range: VaRange) -> Result<VaRange, Error> {
        let end = whole_pages(range.end).unwrap_or(0);
        let range = VaRange { end, ..range };
        Self::check(range)?;
        Ok(range)
    }

    /// What `range` may be in a request.
    fn check(range: VaRange) -> Result<(), Error> {
        let invalid = |reason| Err(Error::Invalid { reason });
        if !range.start.is_multiple_of(PAGE_SIZE) {
            return invalid("the address is not page-aligned");
        }
        if range.end <= range.start {
            return invalid("the length is zero or wraps around");
        }
        if range.start < LOWEST || range.end > HIGHEST {
            return invalid("the range is outside of what tasks may map");
        }
        Ok(())
    }
}

impl<M: Platform, P: Policies<M>> Drop for Space<M, P> {
    fn drop(&mut self) {
        self.clear(VaRange {
            start: LOWEST,
            end: HIGHEST,
        });
    }
}

/// `bytes` in whole pages; `None` if that overflows.
fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(PAGE_SIZE)
}
