//! Address translation: x86-64 4-level tables, tagged TLBs, shootdown.

use crate::{CpuSet, Frame, Memory, PAGE_SIZE, Topology};
use core::fmt;

/// A tag of TLB entries: entries of different tags never meet (x86 PCID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asid(pub u16);

/// A range of virtual addresses, `start .. end`, both page-aligned.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VaRange {
    /// The first address.
    pub start: usize,
    /// The first address behind it.
    pub end: usize,
}

impl VaRange {
    /// The range `start .. start + bytes`.
    #[inline]
    pub const fn sized(start: usize, bytes: usize) -> Self {
        VaRange {
            start,
            end: start + bytes,
        }
    }

    /// Bytes in the range.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Pages in the range.
    #[inline]
    pub const fn pages(self) -> usize {
        self.len() / PAGE_SIZE
    }

    /// Whether `address` lies in the range.
    #[inline]
    pub const fn contains(self, address: usize) -> bool {
        self.start <= address && address < self.end
    }
}

impl fmt::Debug for VaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start, self.end)
    }
}

/// What to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// The entries of a range.
    Range(VaRange),
    /// All entries of the address space.
    All,
}

/// What a task tried to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It read.
    Read,
    /// It wrote.
    Write,
}

/// An access that translation refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// The address.
    pub address: usize,
    /// The access.
    pub access: Access,
    /// Whether a present entry forbade it (else there was none).
    pub present: bool,
}

impl fmt::Display for PageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.access {
            Access::Read => "read",
            Access::Write => "write",
        };
        let why = if self.present {
            "protected"
        } else {
            "not mapped"
        };
        write!(f, "page fault: {what} at {:#x}, {why}", self.address)
    }
}

impl core::error::Error for PageFault {}

/// Address translation as x86-64 does it.
///
/// Tables of four levels lie in frames, with entries as in [`crate::pte`]. Each
/// CPU has a TLB that may keep any translation it has seen, and forgets it only
/// when told to or for its own reasons. The walker sets the accessed and dirty
/// bits in the entry with an atomic read-modify-write, and sets dirty only in an
/// entry that is present and writable at that instant. An entry cached as clean
/// is walked again by the first write. Absent entries are not cached. An access that
/// a cached entry forbids may fault although the tables allow it by now; the fault
/// drops the entry, so the second try goes by the tables. Entries on the way to the
/// one that maps are marked accessed, too.
pub trait Mmu: Memory + Topology {
    /// Makes this CPU translate with the tables at `root`, its entries tagged
    /// `asid`. Flushes nothing.
    fn activate(&self, root: Frame, asid: Asid);

    /// Makes this CPU translate nothing. Flushes nothing.
    fn deactivate(&self);

    /// Forgets entries of `asid` on this CPU, now.
    fn flush_local(&self, asid: Asid, what: Flush);

    /// Forgets entries of `asid` on the CPUs `targets` and returns when the last
    /// of them has acknowledged: from then on none of them translates with what
    /// was flushed, and each access it made so is performed.
    ///
    /// Serves this CPU's own requests meanwhile, so two CPUs may shoot at each
    /// other. The caller may hold spin locks, but none that a target takes in
    /// its shootdown handler (there is none in scalevm).
    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush);

    /// A task on this CPU reads the aligned 64-bit word at `address`.
    fn load(&self, address: usize) -> Result<u64, PageFault>;

    /// A task on this CPU writes the aligned 64-bit word at `address`.
    fn store(&self, address: usize, value: u64) -> Result<(), PageFault>;
}
