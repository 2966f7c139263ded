//! The native pair is exchanged as one, and its words lie where they should.
#![cfg(target_arch = "x86_64")]

use machine::{AtomicPair, NativePair, Ordering};
use std::thread;

#[test]
fn exchanges_both_words_or_none() {
    let pair = NativePair::new([1, 2]);
    assert_eq!(pair.load(), [1, 2]);
    assert_eq!(pair.compare_exchange([1, 3], [8, 9]), Err([1, 2]));
    assert_eq!(pair.compare_exchange([3, 2], [8, 9]), Err([1, 2]));
    assert_eq!(pair.load(), [1, 2]);
    assert_eq!(pair.compare_exchange([1, 2], [u64::MAX, 0]), Ok([1, 2]));
    assert_eq!(pair.load(), [u64::MAX, 0]);
}

#[test]
fn words_stand_alone() {
    let pair = NativePair::new([1, 2]);
    pair.store_word(0, 7, Ordering::Release);
    pair.store_word(1, 8, Ordering::SeqCst);
    assert_eq!(pair.load(), [7, 8]);
    assert_eq!(pair.load_word(0, Ordering::Relaxed), 7);
    assert_eq!(pair.load_word(1, Ordering::Acquire), 8);
}

/// Each thread adds 1 to the first word and 3 to the second.
#[test]
fn no_exchange_is_lost_or_torn() {
    const EACH: u64 = 50_000;
    let pair = NativePair::new([0, 0]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let mut seen = pair.load();
                    while let Err(newer) = pair.compare_exchange(seen, [seen[0] + 1, seen[1] + 3]) {
                        seen = newer;
                    }
                    assert_eq!(seen[0] * 3, seen[1]);
                }
            });
        }
    });
    assert_eq!(pair.load(), [4 * EACH, 12 * EACH]);
}
