//! The space for which each CPU translates.

use crate::error::Error;
use crate::heap::filled;
use alloc::boxed::Box;
use machine::{Asid, Atomic, CpuRange, Machine, Ordering};
use sync::Padded;

/// The CPU is changing from one space to another. Before its first space its word is 0, which is no
/// space's tag.
const CHANGING: u64 = 1 << u16::BITS;

/// Each CPU's space, by tag: a line for each, written by its CPU alone, and at the end of a space
/// that the CPU has not left. [`crate::pmap`]'s `active` has the protocol.
pub(crate) struct CurrentSpaces<M: Machine>(Box<[Padded<M::AtomicU64>]>);

impl<M: Machine> CurrentSpaces<M> {
    /// No CPU has a space.
    pub(crate) fn new(cpus: CpuRange) -> Result<Self, Error> {
        filled(cpus.len(), || Padded(M::AtomicU64::new(0))).map(CurrentSpaces)
    }

    pub(crate) fn label(&self) {
        M::label_value(&*self.0, "Vm.current");
    }

    /// Returns true if the calling CPU translates for the space with `tag`; false if there is no
    /// such CPU.
    #[inline]
    pub(crate) fn has(&self, cpu: usize, tag: Asid) -> bool {
        // Relaxed: it is the only writer, as long as there is such a space.
        let word = self.0.get(cpu);
        word.is_some_and(|word| word.load(Ordering::Relaxed) == u64::from(tag.0))
    }

    /// Records that the CPU translates for no space, if it translated for the one with `tag`, which
    /// ends. Any CPU may do so: the CPU itself goes from this space to no other one meanwhile
    /// without [`CurrentSpaces::change`].
    pub(crate) fn forget(&self, cpu: usize, tag: Asid) {
        let order = Ordering::Relaxed;
        let tag = u64::from(tag.0);
        if self.0[cpu].load(order) == tag {
            // A CPU that has left meanwhile keeps its new space.
            let _ = self.0[cpu].compare_exchange(tag, 0, order, order);
        }
    }

    /// Returns true if another CPU may translate for the space with `tag`. If not, its accesses
    /// there are performed.
    pub(crate) fn may_have(&self, cpu: usize, tag: Asid) -> bool {
        // Acquire: pairs with `set`.
        let now = self.0[cpu].load(Ordering::Acquire);
        now == u64::from(tag.0) || now == CHANGING
    }

    /// Records that the calling CPU begins to change.
    pub(crate) fn change(&self, cpu: usize) {
        self.0[cpu].store(CHANGING, Ordering::Relaxed);
    }

    /// Records that the calling CPU translates for the space with `tag`, and for the last one no
    /// more.
    pub(crate) fn set(&self, cpu: usize, tag: Asid) {
        machine::invariant!(
            // Only the CPU writes it.
            M: self.0[cpu].load(Ordering::Relaxed) == CHANGING,
            "a CPU comes to a space that has not left the last"
        );
        // Release: pairs with `may_have`; the change of the tables comes before. (A task's accesses
        // come before `enter`'s fence.)
        self.0[cpu].store(tag.0.into(), Ordering::Release);
    }
}
