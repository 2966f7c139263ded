//! Giving up all of a superpage.

use super::{USED, frame_at};
use crate::page::Page;
use crate::pmap::Pmap;
use crate::policy::Policies;
use crate::tree::{Part, Size};
use machine::{AtomicInt, Ordering, Platform, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Gives up the pages of `part` if they are all of a superpage and nobody else's; it stays one
    /// until a reclaimer takes the first of them, and a store anywhere keeps them all. Whether
    /// it did; then the superpage's translation is to be flushed.
    pub(in crate::pmap) fn give_up_superpage(&self, part: &Part<'_, M, P>) -> bool {
        if part.size() != Size::Superpage || !part.is_all() {
            return false;
        }
        let first = self.superpage_frame(part);
        let mut run = self.lock_run(first);
        if !(0..pte::ENTRIES).all(|index| self.vm.is_exclusive(frame_at(first, index))) {
            return false;
        }
        // AcqRel: with the walker's exchange, as where it is taken away.
        let superpage = self.superpage(part.range().start);
        superpage.fetch_and(!USED, Ordering::AcqRel);
        // SAFETY: gone with the round.
        while let Some((index, mut list)) = unsafe { run.pop() } {
            list.take_flags(Page::<M, P::Invalidation>::harvest(USED));
            list.set_flags(Page::<M, P::Invalidation>::LAZY);
            self.vm.page(frame_at(first, index)).set_age(0);
        }
        true
    }
}
