//! Which CPUs may have a pmap's translations in their TLB.

#[cfg(test)]
mod model;

use core::array;
use machine::{Atomic, AtomicInt, CpuRange, CpuSet, Machine, Ordering};

/// A set of CPUs that only grows while the pmap lives: TLB entries are tagged, so a
/// CPU that runs another pmap keeps ours. 128 bytes.
///
/// A CPU enters the set before it translates; a flush clears entries before it reads
/// the set. With a full fence between on both sides, the flush sees the CPU or the
/// CPU sees the cleared entries.
pub(super) struct ActiveCpus<M: Machine> {
    words: [M::AtomicU64; CpuSet::WORDS],
}

impl<M: Machine> ActiveCpus<M> {
    pub(super) fn new() -> Self {
        ActiveCpus {
            words: array::from_fn(|_| M::AtomicU64::new(0)),
        }
    }

    pub(super) fn label(&self) {
        let words = self.words.as_ptr().cast();
        M::label(words, size_of_val(&self.words), "Pmap.active");
    }

    /// Adds the calling CPU.
    pub(super) fn insert(&self, cpu: usize) {
        let (word, bit) = (&self.words[cpu / 64], 1 << (cpu % 64));
        // Only this CPU sets its bit, so a set bit is one it has fenced behind.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
            // Pairs with the fence in `look`.
            M::fence(Ordering::SeqCst);
        }
    }

    /// Whether the CPU `own` is in the set, of a machine with these `cpus`, and whether others are. CPUs not in
    /// it do not reach the entries that the caller cleared before.
    #[inline(always)]
    pub(super) fn look(&self, cpus: CpuRange, own: usize) -> (bool, bool) {
        // Pairs with the fence in `insert`.
        M::fence(Ordering::SeqCst);
        let (mut has_own, mut others) = (false, 0);
        for (index, mut word) in self.load(cpus) {
            if index == own / 64 {
                has_own = word & 1 << (own % 64) != 0;
                word &= !(1 << (own % 64));
            }
            others |= word;
        }
        (has_own, others != 0)
    }

    /// The set without `own`, by a caller that has looked at it.
    pub(super) fn others(&self, cpus: CpuRange, own: usize) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        for (index, word) in self.load(cpus) {
            *set.word(index) = word;
        }
        set.remove(own);
        set
    }

    /// The words that `cpus` need.
    #[inline(always)]
    fn load(&self, cpus: CpuRange) -> impl Iterator<Item = (usize, u64)> {
        let words = self.words.iter().take(cpus.len().div_ceil(64));
        // Relaxed: what came before the caller's fence is there.
        words.map(|word| word.load(Ordering::Relaxed)).enumerate()
    }
}
