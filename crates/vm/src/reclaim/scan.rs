//! The hand that looks at pages.

use super::swap_out::{Batch, LAUNDRY};
use crate::page::{Identity, Page};
use crate::policy::Policies;
use crate::vm::{Hold, Vm};
use alloc::sync::Arc;
use machine::{AtomicInt, Frame, Ordering, Platform};

/// Descriptors that a reclaimer looks at before it asks for more.
const STRIDE: usize = 64;

/// Looks that a page survives after it was used.
const YOUNG: u8 = 2;

/// How often the hand goes round for one request: until a page that nobody uses has
/// lost its age, and once more.
const ROUNDS: usize = YOUNG as usize + 2;

/// Where the next look is due.
pub(crate) struct Hand<M: Platform>(M::AtomicUsize);

impl<M: Platform> Hand<M> {
    pub(crate) fn new() -> Self {
        Hand(M::AtomicUsize::new(0))
    }
}

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Frees about `wanted` frames that have not been used lately; how many it did. O(frames)
    /// at most. The caller holds no lock of the VM's.
    pub fn reclaim(self: &Arc<Self>, wanted: usize) -> usize {
        let mut freed = 0;
        let mut batch = Batch::new();
        let looks = (ROUNDS * self.frames().total()).div_ceil(STRIDE);
        for _ in 0..looks {
            // Relaxed: a number.
            let first = self.hand().0.fetch_add(STRIDE, Ordering::Relaxed);
            for index in first..first + STRIDE {
                let frame = Frame((index % self.frames().total()) as u32);
                freed += self.look(frame, &mut batch);
                if batch.is_full() {
                    freed += self.launder(&mut batch);
                }
            }
            if freed + batch.len() >= wanted {
                freed += self.launder(&mut batch);
                if freed >= wanted {
                    return freed;
                }
            }
        }
        freed + self.launder(&mut batch)
    }

    /// Looks at a frame: a page whose time is over goes, or joins the batch that will.
    fn look(self: &Arc<Self>, frame: Frame, batch: &mut Batch<M, P>) -> usize {
        let Some(hold) = self.hold(frame) else {
            return 0;
        };
        let page = self.page(frame);
        if self.test_referenced(&hold) {
            page.set_age(YOUNG);
            return 0;
        }
        match page.age().checked_sub(1) {
            Some(age) => {
                page.set_age(age);
                0
            }
            None => self.take(hold, batch),
        }
    }

    /// Takes a page that is held, or adds it to the batch.
    pub(crate) fn take(&self, hold: Hold<M, P>, batch: &mut Batch<M, P>) -> usize {
        let page = self.page(hold.frame());
        let mut list = page.lock_pv();
        // A private page that is mapped nowhere is being made.
        let stray = list.first().is_none() && page.identity() == Identity::Private;
        if stray || page.flags() & LAUNDRY::<M, P>() != 0 {
            return 0;
        }
        list.set_flags(Page::<M, P::Invalidation>::LAUNDRY);
        drop(list);
        batch.push(hold);
        0
    }
}
