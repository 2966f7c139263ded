//! The language of sequences: one step is one call of one process.

use crate::address::{Address, Handle, Range};
use crate::flags::{Flag, Flags};
use std::fmt;

/// The number of files in every sequence, empty at first.
pub const FILES: u8 = 3;
/// The number of processes that may be alive at once; they are numbered from 0.
pub const PROCESSES: u8 = 6;
/// The most pages of one [`Call::Dump`].
pub const DUMP_PAGES: u64 = 64;
/// The most bytes of one read or write of a file.
pub const TRANSFER: u64 = 256;
/// The most bytes of a file.
pub const FILE_BYTES: u64 = 1 << 20;

/// A process, by its number in the sequence. The first is 0.
pub type ProcessId = u8;

/// One call of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The calling process.
    pub process: ProcessId,
    pub call: Call,
}

/// A call of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `mmap`.
    Map(Map),
    /// `munmap`.
    Unmap(Range),
    /// `mprotect`.
    Protect(Range, Prot),
    /// `mremap`.
    Remap(Remap),
    /// `madvise`.
    Advise(Range, Advice),
    /// `msync`.
    Sync(Range, Flags<SyncFlag>),
    /// `mlock`.
    Lock(Range),
    /// `mlock2` with `MLOCK_ONFAULT`.
    LockOnFault(Range),
    /// `munlock`.
    Unlock(Range),
    /// `mlockall`.
    LockAll(Flags<LockFlag>),
    /// `munlockall`.
    UnlockAll,
    /// `mincore`.
    InCore(Range),
    /// `brk`, to that many bytes above the heap's start.
    Break(u64),
    /// `fork`; the child gets this number.
    Fork(ProcessId),
    Exit,
    /// The effect of `execve` on memory: nothing stays mapped, nothing is locked.
    Replace,
    /// The process reads from its memory.
    Load(Address, Width),
    /// The process writes to its memory.
    Store(Address, Width, u64),
    /// `ftruncate` of a file to that many bytes.
    Truncate(u8, u64),
    /// `pread`.
    Read(Transfer),
    /// `pwrite` of equal bytes.
    Write(Transfer, u8),
    /// The regions of a range, as in `/proc/PID/maps`.
    Regions(Range),
    /// The process reads whole pages.
    Dump(Range),
    /// The system runs short of something. Systems without this control skip it.
    Scarce(Scarcity),
}

/// A shortage of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarcity {
    /// Only that many frames are free, until told otherwise; more if some can be reclaimed.
    Left(u64),
    /// In the next step, the frame request of this number (1 is the first) and all later ones fail.
    Frame(u64),
    /// In the next step, this call to a file's store fails.
    File(u64),
    /// In the next step, this call to the swap space's store fails.
    Swap(u64),
}

/// An `mmap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its place.
    pub at: Where,
    /// Its length in bytes.
    pub bytes: u64,
    /// The rights.
    pub prot: Prot,
    /// `MAP_SHARED`, not `MAP_PRIVATE`.
    pub shared: bool,
    /// The memory that is mapped.
    pub backing: Backing,
    /// Further flags.
    pub flags: Flags<MapFlag>,
}

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Here, in place of other mappings: `MAP_FIXED`.
    Fixed(Address),
    /// Here, if nothing is mapped there: `MAP_FIXED_NOREPLACE`.
    FixedNoReplace(Address),
    /// Here if nothing is mapped there, otherwise elsewhere, under this handle.
    Hint(Address, Handle),
    /// Where the system chooses, under this handle.
    Anywhere(Handle),
}

/// The backing of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Zeroes.
    Anonymous,
    File {
        /// The file's number.
        file: u8,
        /// The first byte.
        offset: u64,
        /// Through a read-only descriptor.
        read_only: bool,
    },
}

/// An `mremap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    pub old: Range,
    /// The new length in bytes.
    pub bytes: u64,
    /// The new place, with `MREMAP_FIXED`.
    pub fixed: Option<Address>,
    /// The handle of a mapping that moves to a place of the system's choice.
    pub handle: Option<Handle>,
    /// Further flags.
    pub flags: Flags<RemapFlag>,
}

/// Some bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub file: u8,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes, at most [`TRANSFER`].
    pub bytes: u64,
}

/// The width of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Byte,
    /// Eight bytes, at a multiple of eight.
    Word,
}

impl Width {
    /// The width in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Width::Byte => 1,
            Width::Word => 8,
        }
    }
}

/// Access rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prot {
    /// `PROT_READ`.
    pub read: bool,
    /// `PROT_WRITE`.
    pub write: bool,
    /// `PROT_EXEC`.
    pub execute: bool,
}

impl Prot {
    /// No access.
    pub const NONE: Prot = Prot::new(false, false, false);
    /// Read only.
    pub const READ: Prot = Prot::new(true, false, false);
    pub const READ_WRITE: Prot = Prot::new(true, true, false);

    /// These rights.
    pub const fn new(read: bool, write: bool, execute: bool) -> Self {
        Prot {
            read,
            write,
            execute,
        }
    }
}

/// In the form of `/proc/PID/maps`.
impl fmt::Display for Prot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [(self.read, 'r'), (self.write, 'w'), (self.execute, 'x')];
        let mut letters = letters.iter();
        letters.try_for_each(|&(on, letter)| write!(f, "{}", if on { letter } else { '-' }))
    }
}

/// Flags of [`Map`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the kernel's")]
pub enum MapFlag {
    Populate,
    NoReserve,
    GrowsDown,
    Locked,
}

impl Flag for MapFlag {
    const ALL: &'static [(Self, &'static str)] = &[
        (MapFlag::Populate, "populate"),
        (MapFlag::NoReserve, "noreserve"),
        (MapFlag::GrowsDown, "growsdown"),
        (MapFlag::Locked, "locked"),
    ];
}

/// Flags of [`Remap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the kernel's")]
pub enum RemapFlag {
    MayMove,
    DontUnmap,
}

impl Flag for RemapFlag {
    const ALL: &'static [(Self, &'static str)] = &[
        (RemapFlag::MayMove, "maymove"),
        (RemapFlag::DontUnmap, "dontunmap"),
    ];
}

/// Flags of [`Call::Sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the kernel's")]
pub enum SyncFlag {
    Async,
    Sync,
    Invalidate,
}

impl Flag for SyncFlag {
    const ALL: &'static [(Self, &'static str)] = &[
        (SyncFlag::Async, "async"),
        (SyncFlag::Sync, "sync"),
        (SyncFlag::Invalidate, "invalidate"),
    ];
}

/// Flags of [`Call::LockAll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the kernel's")]
pub enum LockFlag {
    Current,
    Future,
    OnFault,
}

impl Flag for LockFlag {
    const ALL: &'static [(Self, &'static str)] = &[
        (LockFlag::Current, "current"),
        (LockFlag::Future, "future"),
        (LockFlag::OnFault, "onfault"),
    ];
}

/// The advice of `madvise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the kernel's")]
pub enum Advice {
    Normal,
    Random,
    Sequential,
    WillNeed,
    DontNeed,
    Free,
    Remove,
    DontFork,
    DoFork,
    WipeOnFork,
    KeepOnFork,
    HugePage,
    NoHugePage,
    Cold,
    PageOut,
    PopulateRead,
    PopulateWrite,
}

impl Advice {
    /// All kinds of advice, with their names.
    pub const ALL: [(Advice, &'static str); 17] = [
        (Advice::Normal, "normal"),
        (Advice::Random, "random"),
        (Advice::Sequential, "sequential"),
        (Advice::WillNeed, "willneed"),
        (Advice::DontNeed, "dontneed"),
        (Advice::Free, "free"),
        (Advice::Remove, "remove"),
        (Advice::DontFork, "dontfork"),
        (Advice::DoFork, "dofork"),
        (Advice::WipeOnFork, "wipeonfork"),
        (Advice::KeepOnFork, "keeponfork"),
        (Advice::HugePage, "hugepage"),
        (Advice::NoHugePage, "nohugepage"),
        (Advice::Cold, "cold"),
        (Advice::PageOut, "pageout"),
        (Advice::PopulateRead, "populate-read"),
        (Advice::PopulateWrite, "populate-write"),
    ];

    /// The name in sequences.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(advice, _)| *advice == self);
        found.map_or("", |(_, name)| name)
    }
}
