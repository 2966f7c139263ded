//! The clock that looks at pages, in rounds.

use super::batch::Batch;
use crate::object::PageRef;
use crate::page::Identity;
use crate::pmap::Busy;
use crate::swap::CLUSTER;
use crate::system::System;
use crate::vm::Vm;
use machine::Frame;

/// The number of descriptors that a reclaimer takes from the counter at a time.
const STRIDE: usize = 64;

/// The number of looks that a page survives after it was used.
const YOUNG: u8 = 2;

/// The number of rounds of the hand for one request: enough for an unused page to lose its age, and
/// one more.
const ROUNDS: usize = YOUNG as usize + 2;

impl<S: System> Vm<S> {
    /// Frees about `wanted` frames that have not been used lately, and returns their number.
    /// O(frames) at most, plus the time of the writes. The caller holds no lock of the VM's.
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

    /// Looks at a frame: frees its page if its age has run out, or adds it to the batch. Returns
    /// the number of frames freed.
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

    /// Evicts a page, now or with the batch. Returns the number of frames freed.
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
