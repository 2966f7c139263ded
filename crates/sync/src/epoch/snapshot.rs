//! Snapshots: moments that a task can poll instead of waiting.

use super::{Domain, Protocol};
use core::num::NonZeroU64;
use machine::{Atomic, MAX_CPUS, Machine, Ordering};

/// A moment. A task can ask if all sections that were open then have ended. 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snapshot {
    epoch: u64,
}

/// One outermost section of one CPU. 8 bytes; `Option<SectionId>` too.
///
/// In bits: the CPU's index in the low 10, the section's odd number above. After 2^53 sections on a
/// CPU (years without pause) numbers repeat; an id kept that long may then count as open while the
/// later section lasts, but never as ended while its own section lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SectionId(NonZeroU64);

const CPU_BITS: u32 = MAX_CPUS.trailing_zeros();
const _: () = assert!(MAX_CPUS.is_power_of_two());
const CPU_MASK: u64 = MAX_CPUS as u64 - 1;

impl SectionId {
    #[inline]
    pub(super) fn new(cpu: usize, section: u64) -> Self {
        debug_assert!(section & 1 == 1 && cpu < MAX_CPUS);
        match NonZeroU64::new(section << CPU_BITS | cpu as u64) {
            Some(bits) => SectionId(bits),
            None => unreachable!("a section's number is odd"),
        }
    }

    /// The index of the CPU the section runs or ran on.
    #[inline]
    pub fn cpu(self) -> usize {
        (self.0.get() & CPU_MASK) as usize
    }

    /// The id as a word, never 0.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// The id in a word; `None` for 0 and any word that no id gives.
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let odd = bits >> CPU_BITS & 1 == 1;
        NonZeroU64::new(bits).filter(|_| odd).map(SectionId)
    }
}

impl Snapshot {
    /// The snapshot as a word: never 0, and never one that [`SectionId::to_bits`] gives, so that a
    /// word can hold either (2^52 epochs fit).
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.epoch << (CPU_BITS + 1)
    }

    /// The snapshot in a word; `None` for 0 and any word that no snapshot gives.
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let epoch = bits >> (CPU_BITS + 1);
        let snapshot = Snapshot { epoch };
        (epoch != 0 && snapshot.to_bits() == bits).then_some(snapshot)
    }
}

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// The current moment. One fence, one load.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            epoch: self.stamp(),
        }
    }

    /// Returns true if all sections have ended that were open at the snapshot; what they did then
    /// happens before the return.
    ///
    /// If not, tries to advance, so polling is enough. May return false for a while because of
    /// sections that began after the snapshot at the same epoch. One load if the epoch has moved
    /// on, otherwise a fence and one cache line per CPU. In a section that is older than the
    /// snapshot it returns false.
    pub fn has_passed(&self, snapshot: &Snapshot) -> bool {
        self.pass(snapshot.epoch).is_ok()
    }

    /// Returns true if this very section has ended; if so, what it did happens before the return.
    /// One load. True for an id of a CPU that the domain lacks.
    ///
    /// The id must have come from its section to the caller by synchronization (a lock, or release
    /// and acquire); otherwise the section may not be seen to have begun.
    #[inline]
    pub fn has_left(&self, id: SectionId) -> bool {
        if id.cpu() >= self.records.cpus().len() {
            return true;
        }
        // Acquire: pairs with the release of the exit.
        let section = self.records.of(id.cpu()).section.load(Ordering::Acquire);
        section << CPU_BITS != id.to_bits() & !CPU_MASK
    }
}
