//! The CPUs on which a thread may run.

use core::array;
use machine::Topology;
use metal::{MOST_CPUS, Metal};
use sched::Bounds;

const BITS: usize = u64::BITS as usize;
const WORDS: usize = MOST_CPUS.div_ceil(BITS);

/// A set of CPUs, as the scheduler's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affinity([u64; WORDS]);

impl Affinity {
    /// The existing CPUs of `mask`, which has a bit for each CPU; `None` if it names no existing
    /// one.
    pub fn of(mask: &[u8]) -> Option<Self> {
        let byte = |at: usize| u64::from(mask.get(at).copied().unwrap_or(0));
        let word = |word: usize| (0..8).map(move |at| byte(8 * word + at) << (8 * at)).sum();
        let set = Affinity(array::from_fn(word)).there();
        (set.0 != [0; WORDS]).then_some(set)
    }

    /// The set without CPUs that do not exist.
    fn there(self) -> Self {
        let cpus = Metal.cpus().len();
        let word = |word: usize| match cpus.saturating_sub(BITS * word) {
            0 => 0,
            count @ 1..BITS => self.0[word] & ((1 << count) - 1),
            _ => self.0[word],
        };
        Affinity(array::from_fn(word))
    }

    /// The set as words, with a bit for each existing CPU.
    pub fn words(self) -> impl Iterator<Item = u64> {
        let needed = Metal.cpus().len().div_ceil(BITS);
        self.there().0.into_iter().take(needed)
    }
}

impl Bounds for Affinity {
    fn all() -> Self {
        Affinity([u64::MAX; WORDS])
    }

    fn allow(&self, cpu: usize) -> bool {
        self.0[cpu / BITS] & 1 << (cpu % BITS) != 0
    }
}
