//! The CPUs whose TLBs may have a pmap's translations.
//!
//! # Protocol
//! A CPU translates for one space at a time and records which ([`CurrentSpaces`]). TLB entries are
//! tagged: a CPU that has left a space keeps its entries. A flush does not interrupt such a CPU but
//! marks it *stale*; the CPU drops all its entries of the space when it comes back.
//!
//! - **A CPU that comes** ([`ActiveCpus::enter`]) records that it is changing, enters the set,
//!   fences, and takes its mark. Then it translates by the new tables, flushes if it was marked,
//!   and records that it has arrived.
//! - **A flush**, which has cleared entries, fences and reads the set ([`ActiveCpus::look`]). It
//!   marks the CPUs that are elsewhere, fences, and looks at these again ([`ActiveCpus::others`]).
//!   It interrupts a CPU that has arrived by now, or is changing.
//!
//! In the total order of all fences either the CPU's comes first: then the flush finds it in the
//! set, arrived or changing. Or the flush's comes first: then the CPU finds its mark, if it needs
//! one, and walks cleared entries. A CPU records that it is elsewhere only when it no longer
//! translates by this pmap's tables, so a flush that reads this comes after all its accesses.

#[cfg(test)]
mod model;

use crate::vm::CurrentSpaces;
use core::array;
use machine::{Asid, Atomic, AtomicInt, CpuRange, CpuSet, Machine, Ordering};

/// A set of CPUs that only grows while the pmap lives, and which of them are stale. 256 bytes.
pub(super) struct ActiveCpus<M: Machine> {
    /// Each CPU sets its bit.
    entered: Words<M>,
    /// Flushes set a CPU's bit, and the CPU clears it.
    stale: Words<M>,
}

type Words<M> = [<M as machine::Atomics>::AtomicU64; CpuSet::WORDS];

impl<M: Machine> ActiveCpus<M> {
    pub(super) fn new() -> Self {
        ActiveCpus {
            entered: array::from_fn(|_| M::AtomicU64::new(0)),
            stale: array::from_fn(|_| M::AtomicU64::new(0)),
        }
    }

    pub(super) fn label(&self) {
        M::label_value(&self.entered, "Pmap.active");
        M::label_value(&self.stale, "Pmap.stale");
    }

    /// Lets the calling CPU come to the space with `tag`. `translate` makes it translate by the
    /// space's tables, and also flush its entries of them if its argument is true: that is if the
    /// CPU is stale, or always if several spaces share `tag`.
    #[inline]
    pub(super) fn enter(
        &self,
        current: &CurrentSpaces<M>,
        cpu: usize,
        tag: Asid,
        flushes: bool,
        translate: impl FnOnce(bool),
    ) {
        debug_assert!(tag.0 != 0, "a space has a tag");
        let (word, bit) = (cpu / 64, 1 << (cpu % 64));
        // Only this CPU sets its bit.
        let is_known = self.entered[word].load(Ordering::Relaxed) & bit != 0;
        if is_known && current.has(cpu, tag) {
            // It has not left.
            return translate(false);
        }
        current.change(cpu);
        if !is_known {
            self.entered[word].fetch_or(bit, Ordering::Relaxed);
        }
        // Pairs with the fences in `look` and `others`.
        M::fence(Ordering::SeqCst);
        let is_stale = self.stale[word].load(Ordering::Relaxed) & bit != 0;
        if is_stale {
            // Relaxed: a flush whose fences come after this CPU's interrupts it, and the others'
            // cleared entries are there.
            self.stale[word].fetch_and(!bit, Ordering::Relaxed);
        }
        translate(is_stale || flushes);
        current.set(cpu, tag);
    }

    /// Returns two truths: the CPU `own` is in the set, and so are others of the machine's `cpus`.
    /// CPUs that are not in it do not reach the entries that the caller cleared before.
    #[inline]
    pub(super) fn look(&self, cpus: CpuRange, own: usize) -> (bool, bool) {
        // Pairs with the fence in `enter`.
        M::fence(Ordering::SeqCst);
        let word = self.entered[own / 64].load(Ordering::Relaxed);
        let bit = 1 << (own % 64);
        // Most machines have one word.
        let others = word & !bit != 0 || cpus.len() > 64 && self.has_more(cpus, own / 64);
        (word & bit != 0, others)
    }

    /// Returns true if CPUs of other words than `own` are in the set.
    #[inline(never)]
    fn has_more(&self, cpus: CpuRange, own: usize) -> bool {
        let mut words = self.load(cpus);
        words.any(|(index, word)| index != own && word != 0)
    }

    /// The set, for a caller that has looked at it.
    pub(super) fn all(&self, cpus: CpuRange) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        for (index, word) in self.load(cpus) {
            *set.word(index) = word;
        }
        set
    }

    /// The CPUs of the set, without `own`, that have to be interrupted, for a caller that has
    /// looked at the set. The others flush when they come back: they are marked, unless
    /// `always_flush` says that they always do.
    pub(super) fn others(
        &self,
        current: &CurrentSpaces<M>,
        cpus: CpuRange,
        own: usize,
        tag: Asid,
        always_flush: bool,
    ) -> CpuSet {
        let mut all = self.all(cpus);
        all.remove(own);
        let is_here = |&cpu: &usize| current.may_have(cpu, tag);
        let mut here: CpuSet = all.iter().filter(is_here).collect();
        if here == all || always_flush {
            return here;
        }
        let elsewhere = || all.iter().filter(|&cpu| !here.contains(cpu));
        elsewhere().for_each(|cpu| self.mark(cpu));
        // Pairs with the fence in `enter`, for those that have come since.
        M::fence(Ordering::SeqCst);
        let come: CpuSet = elsewhere().filter(is_here).collect();
        here.extend(come.iter());
        here
    }

    /// Marks a CPU as stale, for a caller that has looked at the set.
    pub(super) fn mark(&self, cpu: usize) {
        let (word, bit) = (&self.stale[cpu / 64], 1 << (cpu % 64));
        machine::invariant!(
            // A CPU never leaves the set.
            M: self.entered[cpu / 64].load(Ordering::Relaxed) & bit != 0,
            "a CPU is marked that knows nothing of the space"
        );
        if word.load(Ordering::Relaxed) & bit == 0 {
            // Relaxed: the fences order it.
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The words of the set that `cpus` need.
    #[inline]
    fn load(&self, cpus: CpuRange) -> impl Iterator<Item = (usize, u64)> {
        let words = self.entered.iter().take(cpus.len().div_ceil(64));
        // Relaxed: the caller's fence orders it.
        words.map(|word| word.load(Ordering::Relaxed)).enumerate()
    }
}
