//! A pair of words under a lock, for processors whose exchange of 16 bytes is not used here, and
//! for interpreters that know no assembly.
//!
//! The pair is as large as two words, so its lock lies elsewhere: one of a few, by the address.
//! Reading one word takes no lock: an exchange writes one word after the other, each at once.
//!
//! An interrupt handler that uses pairs would wait for the task that it interrupts; a port where
//! handlers do has an [`AtomicPair`] of its own.

use crate::AtomicPair;
use core::hint;
use core::sync::atomic::Ordering::{self, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU64};

/// Locks of all pairs; each on a line of its own.
const LOCKS: usize = 64;

#[repr(align(64))]
struct Lock(AtomicBool);

static ALL: [Lock; LOCKS] = [const { Lock(AtomicBool::new(false)) }; LOCKS];

/// Two words under one of the locks.
#[repr(C, align(16))]
pub struct LockedPair([AtomicU64; 2]);

/// The right to change the pairs of a lock.
struct Held(&'static AtomicBool);

impl LockedPair {
    fn lock(&self) -> Held {
        let lock = &ALL[core::ptr::from_ref(self).addr() / size_of::<Self>() % LOCKS].0;
        // SeqCst: an operation on both words is a sequentially consistent read-modify-write. It
        // acquires what the last holder released (`Held::drop`).
        while lock.swap(true, SeqCst) {
            while lock.load(Relaxed) {
                hint::spin_loop();
            }
        }
        Held(lock)
    }

    fn words(&self) -> [u64; 2] {
        self.0.each_ref().map(|word| word.load(SeqCst))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Release: pairs with the swap of the next holder.
        self.0.store(false, Release);
    }
}

impl AtomicPair for LockedPair {
    fn new(value: [u64; 2]) -> Self {
        LockedPair(value.map(AtomicU64::new))
    }

    fn load(&self) -> [u64; 2] {
        let _held = self.lock();
        self.words()
    }

    fn load_word(&self, index: usize, order: Ordering) -> u64 {
        self.0[index].load(order)
    }

    fn store_word(&self, index: usize, value: u64, order: Ordering) {
        // Otherwise an exchange could miss it between its look and its stores.
        let _held = self.lock();
        self.0[index].store(value, order);
    }

    fn compare_exchange(&self, current: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], [u64; 2]> {
        let _held = self.lock();
        let old = self.words();
        if old != current {
            return Err(old);
        }
        for (word, value) in self.0.iter().zip(new) {
            word.store(value, SeqCst);
        }
        Ok(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    extern crate std;

    #[test]
    fn it_is_a_pair() {
        conformance::pair::<LockedPair>();
        assert_eq!(
            (size_of::<LockedPair>(), align_of::<LockedPair>()),
            (16, 16)
        );
    }

    /// Each thread adds to both words by exchanges and to one by nothing else, and looks meanwhile.
    #[test]
    fn no_exchange_is_lost_and_none_is_seen_half() {
        const ROUNDS: u64 = 2_000;
        let pair = LockedPair::new([0, 7]);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut seen = pair.load();
                        assert_eq!(seen[0] + 7, seen[1], "half an exchange");
                        while let Err(now) = pair.compare_exchange(seen, seen.map(|n| n + 1)) {
                            seen = now;
                        }
                    }
                });
            }
        });
        assert_eq!(pair.load(), [3 * ROUNDS, 7 + 3 * ROUNDS]);
    }
}
