//! Looking at pages, in rounds.

use super::batch::Batch;
use crate::object::PageRef;
use crate::page::Identity;
use crate::pmap::Busy;
use crate::swap::CLUSTER;
use crate::system::System;
use crate::vm::Vm;
use machine::Frame;

/// Descriptors that a reclaimer looks at before it asks for more.
const STRIDE: usize = 64;

/// Looks that a page survives after it was used.
const YOUNG: u8 = 2;

/// The number of rounds of the hand for one request: enough for an unused page to lose its age, and
/// one more.
const ROUNDS: usize = YOUNG as usize + 2;

impl<S: System> Vm<S> {
    /// Frees about `wanted` frames that have not been used lately; how many it did. O(frames)
    /// at most, and as long as it takes to write. The caller holds no lock of the VM's.
    pub fn reclaim(&self, wanted: usize) -> usize {
        self.hand().reclaiming(|| self.go_round(wanted))
    }

    fn go_round(&self, wanted: usize) -> usize {
        let mut freed = 0;
        let mut batch = Batch::new(self);
        let total = self.frames().total();
        for _ in 0..(ROUNDS * total).div_ceil(STRIDE) {
            let first = self.hand().advance(STRIDE);
            for index in first..first + STRIDE {
                freed += self.look(self.frames().nth(index % total), &mut batch);
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

    /// Looks at a frame: a page whose time is over goes, or joins the batch that will; how
    /// many frames that freed.
    fn look<'a>(&'a self, frame: Frame, batch: &mut Batch<'a, S>) -> usize {
        let Some(held) = self.page_ref(frame) else {
            return 0;
        };
        let page = self.page(frame);
        match self.test_referenced_at(frame) {
            Ok(false) => {}
            Ok(true) => {
                page.set_age(YOUNG);
                return 0;
            }
            Err(Busy) => return 0,
        }
        match page.age().checked_sub(1) {
            Some(age) => {
                page.set_age(age);
                0
            }
            None => self.send_out(held, batch),
        }
    }

    /// Sends a page out, now or with the batch; how many frames that freed.
    pub(crate) fn send_out<'a>(&'a self, held: PageRef<'a, S>, batch: &mut Batch<'a, S>) -> usize {
        let page = self.page(held.frame());
        let mut list = self.lock_pv(held.frame());
        // Read once: an object that makes the page says so without the PV lock.
        let identity = page.identity();
        if let Identity::Object(_) = identity {
            drop(list);
            return usize::from(self.evict(held));
        }
        // A private page that is mapped nowhere is being made.
        let stray = list.first().is_none() && identity == Identity::Private;
        if !stray && list.begin_laundry() {
            drop(list);
            match self.forget(held) {
                Ok(freed) => return freed,
                Err(held) => batch.push(held),
            }
        }
        debug_assert!(
            batch.len() <= CLUSTER,
            "a batch has more than it has room for"
        );
        if batch.is_full() {
            self.launder(batch)
        } else {
            0
        }
    }
}
