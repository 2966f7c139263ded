//! The generation that must have ended before a page is known to be unreachable.
//!
//! FreeBSD keeps the number next to the lock of the PV lists. So pages that share a PV list lock
//! share the number, and a wait for one page also waits for the blocks of the others.

use alloc::boxed::Box;
use machine::{Atomic, Frame, Machine, Ordering};
use sync::Padded;
use vm::Error;
use vm::heap::filled;

/// log2 of the frames in a 2 MiB region.
pub(crate) const REGION_SHIFT: u32 = 9;

/// PV list locks of FreeBSD/amd64 while it had [`super::Di`]: `NPV_LIST_LOCKS`, which was `MAXCPU`.
pub(crate) const PV_LIST_LOCKS: usize = 256;

/// The number of 2 MiB regions that `frames` frames extend into; at least one.
pub(crate) fn regions(frames: usize) -> usize {
    frames.div_ceil(1 << REGION_SHIFT).max(1)
}

/// A generation for the pages of a 2 MiB region, and perhaps of others.
pub(crate) struct Generation<M: Machine>(M::AtomicU64);

impl<M: Machine> Generation<M> {
    fn new() -> Self {
        Generation(M::AtomicU64::new(0))
    }

    /// Raises the generation at least to `generation`.
    ///
    /// FreeBSD compares and stores under the PV list lock that covers exactly these pages. Here
    /// each page has a PV lock, so the store is an exchange, which is as rare.
    #[inline]
    pub(crate) fn raise(&self, generation: u64) {
        let raised = |seen| (seen < generation).then_some(generation);
        // Release: pairs with the acquire in `get`. Only the number matters to a waiter, and the PV
        // lock already orders it; the pair is for aliases. An error means that the generation is
        // already as new.
        let _ = self
            .0
            .fetch_update(Ordering::Release, Ordering::Relaxed, raised);
    }

    /// The newest generation that noted one of the pages.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// [`PV_LIST_LOCKS`] generations (fewer if memory has fewer regions), 2 MiB regions hashed onto
/// them; 2 KiB, eight to a 64-byte cache line, packed as in FreeBSD.
pub(crate) struct Hashed<M: Machine>(Box<[Generation<M>]>);

impl<M: Machine> Hashed<M> {
    pub(crate) fn new(frames: usize) -> Result<Self, Error> {
        let count = regions(frames).min(PV_LIST_LOCKS);
        Ok(Hashed(filled(count, Generation::new)?))
    }

    #[inline]
    pub(crate) fn of(&self, frame: Frame) -> &Generation<M> {
        &self.0[(frame.index() >> REGION_SHIFT) % self.0.len()]
    }

    pub(crate) fn label(&self) {
        M::label_value(&*self.0, "generation of a region");
    }
}

/// A generation for each 2 MiB region of physical memory, as in a FreeBSD kernel built for NUMA
/// (such as GENERIC) since the lists became lock-free. There it lies next to the region's PV lock
/// and list, about a cache line per region; here it has a line of its own.
pub(crate) struct PerRegion<M: Machine>(Box<[Padded<Generation<M>>]>);

impl<M: Machine> PerRegion<M> {
    pub(crate) fn new(frames: usize) -> Result<Self, Error> {
        let generation = || Padded(Generation::new());
        Ok(PerRegion(filled(regions(frames), generation)?))
    }

    /// The region's generation; frames beyond memory share the last one.
    #[inline]
    pub(crate) fn of(&self, frame: Frame) -> &Generation<M> {
        let last = self.0.len() - 1;
        &self.0[(frame.index() >> REGION_SHIFT).min(last)]
    }

    pub(crate) fn label(&self) {
        M::label_value(&*self.0, "generation of a region");
    }
}
