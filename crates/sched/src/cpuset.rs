//! Sets of CPUs that all CPUs read and change: `struct cpuset` of OpenBSD, a `cpumask` of Linux.
//! Words of 32 bits, changed atomically.

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

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use hosted::Hosted;
    use std::collections::BTreeSet;

    /// Every third CPU, and every fourth, of machines of one word and of several.
    #[test]
    fn sets_are_those_of_the_model() {
        for cpus in [31, 32, 33, 65, 129] {
            let sets = [0, 1].map(|first| {
                let (set, model) = (CpuSet::<Hosted>::new(cpus), (0..cpus).step_by(3 + first));
                (0..cpus).for_each(|cpu| set.insert(cpu));
                let model: BTreeSet<usize> = model.collect();
                let others = (0..cpus).filter(|cpu| !model.contains(cpu));
                others.for_each(|cpu| set.remove(cpu));
                assert!(set.iter().eq(model.iter().copied()), "{cpus} CPUs");
                (0..cpus).for_each(|cpu| assert_eq!(set.contains(cpu), model.contains(&cpu)));
                (set, model)
            });
            for [(one, ours), (other, theirs)] in [[&sets[0], &sets[1]], [&sets[1], &sets[0]]] {
                let rest = ours.difference(theirs).copied();
                assert!(one.without(other).eq(rest), "{cpus} CPUs");
            }
        }
    }
}
