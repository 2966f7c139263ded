//! Sets of CPUs that all CPUs read and change: `struct cpuset` of OpenBSD, a `cpumask` of Linux. Words of
//! 32 bits, changed atomically.

use alloc::boxed::Box;
use machine::{Atomic, AtomicInt, Machine, Ordering};

/// A set of CPUs.
pub(crate) struct CpuSet<M: Machine>(Box<[M::AtomicU32]>);

impl<M: Machine> CpuSet<M> {
    /// The empty set of this many CPUs.
    pub(crate) fn new(cpus: usize) -> Self {
        CpuSet(
            (0..cpus.div_ceil(32))
                .map(|_| M::AtomicU32::new(0))
                .collect(),
        )
    }

    pub(crate) fn contains(&self, cpu: usize) -> bool {
        self.0[cpu / 32].load(Ordering::Relaxed) & 1 << (cpu % 32) != 0
    }

    pub(crate) fn insert(&self, cpu: usize) {
        // Relaxed, as in `remove`: a caller that needs an order has fences.
        self.0[cpu / 32].fetch_or(1 << (cpu % 32), Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, cpu: usize) {
        self.0[cpu / 32].fetch_and(!(1 << (cpu % 32)), Ordering::Relaxed);
    }

    /// The CPUs in `self` and not in `other`, ascending.
    pub(crate) fn without(&self, other: &Self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().zip(&other.0).enumerate();
        words.flat_map(|(word, (ours, theirs))| {
            let bits = ours.load(Ordering::Relaxed) & !theirs.load(Ordering::Relaxed);
            bits_of(bits).map(move |bit| 32 * word + bit)
        })
    }

    /// The CPUs in the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(word, bits)| {
            bits_of(bits.load(Ordering::Relaxed)).map(move |bit| 32 * word + bit)
        })
    }
}

/// The numbers of the bits that are set, ascending.
fn bits_of(bits: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |bit| bits & 1 << bit != 0)
}
