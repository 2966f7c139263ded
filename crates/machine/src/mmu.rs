//! Address translation: x86-64 4-level tables, tagged TLBs, shootdown.

use crate::{CpuSet, Frame, Memory, PAGE_SIZE, Topology};
use core::fmt;
use core::ops::Range;

/// A tag of TLB entries: entries of different tags are separate (x86 PCID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asid(pub u16);

/// A range of virtual addresses, `start .. end`, both page-aligned.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VaRange {
    /// The first address.
    pub start: usize,
    /// The first address after it.
    pub end: usize,
}

impl VaRange {
    /// The range `start .. start + bytes`.
    ///
    /// # Panics
    /// With debug assertions, if the end is beyond `usize::MAX`; without, it wraps around.
    /// [`VaRange::checked`] is for numbers of others.
    #[inline]
    pub const fn sized(start: usize, bytes: usize) -> Self {
        VaRange {
            start,
            end: start + bytes,
        }
    }

    /// The range `start .. start + bytes`, if it has an end.
    #[inline]
    pub const fn checked(start: usize, bytes: usize) -> Option<Self> {
        match start.checked_add(bytes) {
            Some(end) => Some(VaRange { start, end }),
            None => None,
        }
    }

    /// The page that covers `address`, which is not the last one.
    #[inline]
    pub const fn page(address: usize) -> Self {
        VaRange::sized(address & !(PAGE_SIZE - 1), PAGE_SIZE)
    }

    /// Bytes in the range; 0 if it ends before it begins.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Pages in the range.
    #[inline]
    pub const fn pages(self) -> usize {
        self.len() / PAGE_SIZE
    }

    /// Returns true if `address` lies in the range.
    #[inline]
    pub const fn contains(self, address: usize) -> bool {
        self.start <= address && address < self.end
    }

    /// The part that both ranges share; may be empty.
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

/// The part that all address spaces share: the kernel's entries of a root table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelEntries {
    /// A root table that has the entries.
    pub root: Frame,
    /// Their indices, all at or above [`crate::pte::USER_ENTRIES`].
    pub places: Range<usize>,
}

/// Translations to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flush {
    /// Every translation of an address in the range, including an entry of a larger page that the
    /// range names only in part.
    Range(VaRange),
    /// All entries of the address space.
    All,
}

/// A kind of access by a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It read.
    Read,
    /// It wrote.
    Write,
    /// It fetched an instruction.
    Execute,
}

/// An access that translation refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageFault {
    /// The address.
    pub address: usize,
    /// The access.
    pub access: Access,
    /// True if a present entry forbade the access (otherwise there was none).
    pub present: bool,
}

impl fmt::Display for PageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Execute => "execute",
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
/// Tables of four levels lie in frames, with entries as in [`crate::pte`]. Each CPU has a TLB that
/// may keep any translation it has seen, and drops it when told to or for its own reasons. The
/// walker sets the accessed and dirty bits in the entry with an atomic read-modify-write, and sets
/// dirty only in an entry that is present and writable at that instant. The first write through an
/// entry cached as clean walks again. Absent entries are not cached. An access that a cached entry
/// forbids may fault although the tables allow it by now; the fault drops the entry, so the second
/// try follows the tables. Entries on the way to the one that maps are also marked accessed.
///
/// # Pages of 2 MiB
/// An entry of level 1 with [`crate::pte::HUGE`] maps 512 frames, the first of them aligned to as
/// many. It has one accessed and one dirty bit for the 2 MiB. A TLB may keep it as one translation
/// or piece by piece; either way the flush of any address in it drops all of it.
///
/// A kernel may change an entry of level 1 from a table to a large page or back while CPUs use it.
/// Until the flush, a TLB may hold translations of both kinds for an address and use either, and a
/// write sets the dirty bit in the entry that the walker finds at that time. So:
/// - from a table to a large page, with an exchange of the entry: until all of the 2 MiB is
///   flushed, CPUs may use the translations they have of the table, and mark its entries accessed
///   and dirty. Only after the flush may the table be read for its final bits, or freed.
/// - from a large page to a table: the table's entries may be used at once, but CPUs may go on
///   translating by the large page, and writing if it was cached as dirty, until any address in it
///   is flushed.
/// - with different frames or fewer rights, in both cases, a CPU may see the old and the new in
///   turn until the flush; with the same frames and rights it notices nothing.
///
/// # Safety
/// A kernel relies on the following when it gives a frame to a new owner or believes an entry
/// clean:
/// - An access of a task reaches only the frame that an entry of the active tables names for its
///   address, as the tables are now or as a TLB has cached them since the last flush of that
///   address and tag, and only if all entries on the way allow it.
/// - When [`Mmu::flush_local`] or [`Mmu::shootdown`] returns, no named CPU uses a flushed
///   translation, neither for an access nor to continue a walk, and every access that used one is
///   performed.
/// - A write that was allowed shows as the dirty bit of the entry that maps, at the latest when the
///   access is performed; no bit is ever set in an entry that is not present.
/// - The entries in [`Mmu::kernel_entries`] map nothing that tasks may use.
pub unsafe trait Mmu: Memory + Topology {
    /// The number of tags: [`Asid`] 0 and those after it, 65,536 at most. x86 has 4,096
    /// process-context identifiers; a machine without tags has one, and a CPU of it drops all
    /// entries when it begins to translate by another root than before, or by the same after it
    /// translated nothing.
    fn asids(&self) -> usize;

    /// The kernel's entries of a root table, if the kernel is mapped in all address spaces. The VM
    /// copies them into each root that it activates and never touches the tables below them. They
    /// must not change once copied (a kernel makes the tables below them beforehand, and changes
    /// those).
    fn kernel_entries(&self) -> Option<KernelEntries>;

    /// Makes this CPU translate with the tables at `root`, its entries tagged
    /// `asid`. Flushes nothing, if there is more than one tag.
    ///
    /// # Safety
    /// `root` is a root table, with the kernel's entries if there are any, and the tables below it
    /// lead to nothing but tables and to frames that tasks may use. It and they stay tables until
    /// the CPU translates otherwise; on a machine whose tasks reach memory only by
    /// [`Mmu::load`] and its like, as long as such a call lasts.
    unsafe fn activate(&self, root: Frame, asid: Asid);

    /// Makes this CPU translate nothing. Flushes nothing. The VM never calls it: the kernel does,
    /// on a CPU that is to leave a space for no other one.
    fn deactivate(&self);

    /// Drops entries of `asid` on this CPU, now.
    fn flush_local(&self, asid: Asid, what: Flush);

    /// Drops entries of `asid` on the CPUs `targets` and returns when the last of them has
    /// acknowledged: from then on none of them uses a flushed translation, and every access made
    /// through one is performed.
    ///
    /// Serves this CPU's own requests meanwhile, so two CPUs may send each other shootdowns. The
    /// caller may hold spin locks, but none that a target acquires in its shootdown handler (there
    /// is none in scalevm).
    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush);

    /// A task on this CPU reads the aligned 64-bit word at `address`.
    ///
    /// # Safety
    /// The tables by which this CPU translates are still tables, during the call.
    unsafe fn load(&self, address: usize) -> Result<u64, PageFault>;

    /// A task on this CPU writes the aligned 64-bit word at `address`.
    ///
    /// # Safety
    /// The tables by which this CPU translates are still tables, during the call.
    unsafe fn store(&self, address: usize, value: u64) -> Result<(), PageFault>;

    /// A task on this CPU fetches the aligned 64-bit word at `address` to execute it.
    ///
    /// # Safety
    /// The tables by which this CPU translates are still tables, during the call.
    unsafe fn fetch(&self, address: usize) -> Result<u64, PageFault>;
}
