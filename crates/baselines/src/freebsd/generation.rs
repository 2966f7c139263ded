//! Which generation must have ended before a page is known to be unreachable.
//!
//! FreeBSD keeps the number beside the lock of the PV lists, so pages that share a PV
//! list lock share the number, and a wait for one waits for the others' blocks.

use alloc::boxed::Box;
use machine::{Atomic, Frame, Machine, Ordering};
use sync::Padded;

/// log2 of the frames in a 2 MiB region.
pub(crate) const REGION_SHIFT: u32 = 9;

/// PV list locks of FreeBSD/amd64 while it had [`super::Di`]: `NPV_LIST_LOCKS`, which
/// was `MAXCPU`.
pub(crate) const PV_LIST_LOCKS: usize = 256;

/// The 2 MiB regions that `frames` frames reach into; one at least.
pub(crate) fn regions(frames: usize) -> usize {
    frames.div_ceil(1 << REGION_SHIFT).max(1)
}

/// A generation for the pages of a 2 MiB region, and perhaps of others.
pub(crate) struct Generation<M: Machine>(M::AtomicU64);

impl<M: Machine> Generation<M> {
    fn new() -> Self {
        Generation(M::AtomicU64::new(0))
    }

    /// Raises the generation to `generation` at least.
    ///
    /// FreeBSD compares and stores under the PV list lock that covers just these pages.
    /// Here PV locks are as fine as a page, so the store is an exchange; it is as rare.
    #[inline]
    pub(crate) fn raise(&self, generation: u64) {
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen < generation {
            // Release: pairs with the acquire in `get`. Only the number matters to a
            // waiter, and the PV lock already orders it; the pair is for aliases.
            match self.0.compare_exchange_weak(
                seen,
                generation,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(newer) => seen = newer,
            }
        }
    }

    /// The newest generation that noted one of the pages.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// [`PV_LIST_LOCKS`] generations (fewer if memory has fewer regions), 2 MiB regions hashed
/// onto them; 2 KiB, eight to a 64-byte line, as FreeBSD packs them.
pub(crate) struct Hashed<M: Machine>(Box<[Generation<M>]>);

impl<M: Machine> Hashed<M> {
    pub(crate) fn new(frames: usize) -> Self {
        let count = regions(frames).min(PV_LIST_LOCKS);
        Hashed((0..count).map(|_| Generation::new()).collect())
    }

    #[inline]
    pub(crate) fn of(&self, frame: Frame) -> &Generation<M> {
        &self.0[(frame.index() >> REGION_SHIFT) % self.0.len()]
    }

    pub(crate) fn label(&self) {
        M::label_value(&*self.0, "generation of a region");
    }
}

/// A generation for each 2 MiB region of physical memory: what a FreeBSD kernel built
/// for NUMA (as its GENERIC is) does since the lists became lock-free. There it lies
/// beside the region's PV lock and list, about a line a region; here on its own line.
pub(crate) struct PerRegion<M: Machine>(Box<[Padded<Generation<M>>]>);

impl<M: Machine> PerRegion<M> {
    pub(crate) fn new(frames: usize) -> Self {
        PerRegion(
            (0..regions(frames))
                .map(|_| Padded(Generation::new()))
                .collect(),
        )
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
