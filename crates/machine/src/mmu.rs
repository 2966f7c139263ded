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

    /// What both ranges have; empty if that is nothing.
    #[inline]
    pub const fn common(self, other: VaRange) -> VaRange {
        let start = if self.start > other.start {
            self.start
        } else {
            other.start
        };
        let end = if self.end < other.end {
            self.end
        } else {
            other.end
        };
        VaRange {
            start,
            end: if end > start { end } else { start },
        }
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
    /// What translates an address of the range, whole: the entry of a larger page as well
    /// of which only a part is named.
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
///
/// # Pages of 2 MiB
/// An entry of level 1 with [`crate::pte::HUGE`] maps 512 frames, the first of them aligned
/// to as many. Accessed and dirty bits are its own: one of each for the 2 MiB. A TLB may
/// keep it as one translation or piece by piece; either way the flush of any address in it
/// forgets all of it.
///
/// A kernel may change an entry of level 1 from a table to a large page or back while CPUs
/// use it. Until the flush, a TLB may hold translations of both kinds for an address and
/// use either, and writes set the dirty bit in the entry that the walker finds by then. So:
/// - from a table to a large page, with an exchange of the entry: until the flush of all of
///   the 2 MiB, CPUs may use, and mark as used and dirty, what they have of the table. It
///   may be read for good, or freed, behind the flush only.
/// - from a large page to a table: entries of the table may be used at once, but the large
///   page goes on being translated, and written if it was cached as dirty, until the flush
///   of any address in it.
/// - with different frames or fewer rights, in both cases, a CPU may see the old and the new
///   in turn until then; with the same frames and rights it notices nothing.
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
