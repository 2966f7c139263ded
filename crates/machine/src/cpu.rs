//! CPUs: which one runs the calling code, and how it waits.

use core::sync::atomic::{AtomicU64, Ordering};

/// The most CPUs one machine may have.
pub const MAX_CPUS: usize = 1024;

/// Bits of a [`CpuId`] that number the CPU within its machine.
const INDEX_BITS: u32 = 16;

/// One CPU of one machine, unique in the process: two machines never share an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CpuId(u64);

impl CpuId {
    /// The id of code that runs on no CPU; no [`CpuRange`] contains it.
    pub const NONE: CpuId = CpuId(u64::MAX);

    /// The CPU's number within its machine, from 0.
    #[inline]
    pub const fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

/// The CPUs of one machine: consecutive ids.
///
/// Structures indexed by CPU keep the range of their machine. Looking a CPU up costs one
/// subtraction and the bounds check that an array needs anyway, and a CPU of another machine, or no
/// CPU at all, cannot be mistaken for one of this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CpuRange {
    base: u64,
    count: u16,
}

impl CpuRange {
    /// Claims ids for a new machine of `count` CPUs.
    ///
    /// # Panics
    /// If `count` is 0 or above [`MAX_CPUS`].
    pub fn claim(count: usize) -> Self {
        assert!(
            (1..=MAX_CPUS).contains(&count),
            "a machine has 1 to {MAX_CPUS} CPUs, not {count}"
        );
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        CpuRange {
            base: serial << INDEX_BITS,
            count: count as u16,
        }
    }

    /// The number of CPUs.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // a range is never empty
    pub const fn len(self) -> usize {
        self.count as usize
    }

    /// The `index`-th CPU.
    ///
    /// # Panics
    /// If there is none.
    pub fn cpu(self, index: usize) -> CpuId {
        assert!(index < self.len(), "no CPU {index} among {}", self.count);
        CpuId(self.base + index as u64)
    }

    /// The first `count` of these CPUs.
    ///
    /// # Panics
    /// If `count` is 0 or above [`CpuRange::len`].
    pub fn first(self, count: usize) -> Self {
        assert!(
            (1..=self.len()).contains(&count),
            "no {count} of {} CPUs",
            self.count
        );
        CpuRange {
            count: count as u16,
            ..self
        }
    }

    /// The index of `cpu` in an array indexed by this range; at or above [`CpuRange::len`] if it is
    /// not a CPU of this machine.
    #[inline]
    pub const fn index_of(self, cpu: CpuId) -> usize {
        cpu.0.wrapping_sub(self.base) as usize
    }
}

/// The CPU that runs the calling code.
///
/// A task that holds a pin must not sleep ([`Tasks::park`](crate::Tasks::park),
/// [`Tasks::yield_now`](crate::Tasks::yield_now),
/// [`Clock::sleep_until`](crate::Clock::sleep_until)): the CPU could run no other task meanwhile. A
/// machine that counts pins ([`Cpus::pins`]) panics if one does.
///
/// # Safety
/// While a [`Cpus::Pin`] lives, no other task may hold a pin of the same CPU:
/// per-CPU data relies on it.
pub unsafe trait Cpus {
    /// Proof that the task stays on one CPU while this lives, and that no other task runs there. A
    /// kernel disables preemption; a machine whose tasks own a CPU does nothing.
    type Pin: Pinned;

    /// Pins the calling task to its CPU.
    fn pin() -> Self::Pin;

    /// The number of pins that the calling task holds, on a machine that counts them; elsewhere 0.
    /// For checks only: a simulator and a model checker always count, a machine built for speed
    /// only with debug assertions.
    fn pins() -> u32;

    /// The number of CPUs, from the first of `cpus` on, that may have run a task; a scan leaves out
    /// the rest. A CPU counts before anything that it publishes
    /// ([`Atomic::publish`](crate::Atomic::publish)), so a caller that has fenced since misses none
    /// that it has to see.
    #[inline(always)]
    fn begun(cpus: CpuRange) -> usize {
        cpus.len()
    }

    /// The NUMA node of the CPU that runs the caller; 0 where the machine knows of none.
    #[inline]
    fn numa_node() -> usize {
        0
    }

    /// Waits a moment for another CPU to change a value that the caller has read since its last
    /// `relax`; `round` counts the caller's calls in this wait.
    ///
    /// A real machine pauses. One whose CPUs can be preempted yields from some round on. A
    /// simulator sleeps until a line changes.
    fn relax(round: u32);

    /// Executes about `pauses` pause instructions, whatever other CPUs do.
    fn delay(pauses: u32);

    /// Waits until `condition` holds. It should only read shared memory.
    #[inline]
    fn spin_until(mut condition: impl FnMut() -> bool) {
        let mut round = 0;
        while !condition() {
            Self::relax(round);
            round = round.saturating_add(1);
        }
    }
}

/// A pin's view of the CPU.
pub trait Pinned {
    /// The CPU the task is pinned to; [`CpuId::NONE`] if the caller runs on no CPU.
    fn cpu(&self) -> CpuId;
}

/// Which CPUs a machine has.
pub trait Topology {
    /// The CPUs of this machine.
    fn cpus(&self) -> CpuRange;

    /// The number of its NUMA nodes, as far as it knows ([`Cpus::numa_node`]).
    fn numa_nodes(&self) -> usize {
        1
    }
}

/// A set of CPUs of one machine, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CpuSet {
    words: [u64; MAX_CPUS / 64],
}

impl CpuSet {
    /// Words in a set; [`CpuSet::word`] takes an index below this.
    pub const WORDS: usize = MAX_CPUS / 64;

    /// The empty set.
    pub const EMPTY: CpuSet = CpuSet {
        words: [0; Self::WORDS],
    };

    /// Adds the CPU with this index.
    #[inline]
    pub fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// Removes the CPU with this index.
    #[inline]
    pub fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    /// Returns true if the CPU with this index is in the set.
    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        self.words[index / 64] & (1 << (index % 64)) != 0
    }

    /// Returns true if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // All words at once: most sets are looked through to the end.
        self.words.iter().fold(0, |all, word| all | word) == 0
    }

    /// The number of CPUs in the set.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The 64 CPUs from `64 * word` on, as bits.
    #[inline]
    pub fn word(&mut self, word: usize) -> &mut u64 {
        &mut self.words[word]
    }

    /// The indices in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    i * 64 + bit
                })
            })
        })
    }
}

impl Extend<usize> for CpuSet {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, indices: I) {
        indices.into_iter().for_each(|index| self.insert(index));
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut set = CpuSet::EMPTY;
        set.extend(indices);
        set
    }
}
