//! The language: one step is one call of one process.

use crate::address::{Address, Handle, Range};
use crate::flags::{Flag, Flags};
use std::fmt;

/// Files that every sequence has, empty at first.
pub const FILES: u8 = 3;
/// Processes that may be alive at once; they are numbered from 0.
pub const PROCESSES: u8 = 6;
/// Pages that one [`Call::Dump`] may ask for.
pub const DUMP_PAGES: u64 = 64;
/// Bytes that one read or write of a file may transfer.
pub const TRANSFER: u64 = 256;
/// Bytes that a file may have.
pub const FILE_BYTES: u64 = 1 << 20;

/// A process, by the number the sequence gives it. The first is 0.
pub type ProcessId = u8;

/// One call of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who calls.
    pub process: ProcessId,
    /// What.
    pub call: Call,
}

/// What a process does.
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
    /// `brk`, to so many bytes above the heap's start.
    Break(u64),
    /// `fork`; the child gets this number.
    Fork(ProcessId),
    /// `_exit`.
    Exit,
    /// What `execve` does to memory: nothing stays mapped, nothing is locked.
    Replace,
    /// The process reads from its memory.
    Load(Address, Width),
    /// The process writes to its memory.
    Store(Address, Width, u64),
    /// `ftruncate` of a file to so many bytes.
    Truncate(u8, u64),
    /// `pread`.
    Read(Transfer),
    /// `pwrite` of bytes that all are equal.
    Write(Transfer, u8),
    /// What `/proc/PID/maps` says of a range.
    Regions(Range),
    /// The process reads all of some pages.
    Dump(Range),
    /// The system has too little of something. Systems that can not be made so leave it out.
    Scarce(Scarcity),
}

/// What a system has too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarcity {
    /// Only so many frames are free, until something else is said; there are more if some can
    /// be reclaimed.
    Left(u64),
    /// In the next step this frame that is asked for (1 is the first), and all that are asked for
    /// then, are not to be had.
    Frame(u64),
    /// In the next step this call of a file's store fails.
    File(u64),
    /// In the next step this call of the swap space's store fails.
    Swap(u64),
}

/// An `mmap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Where.
    pub at: Where,
    /// How many bytes.
    pub bytes: u64,
    /// The rights.
    pub prot: Prot,
    /// `MAP_SHARED`, not `MAP_PRIVATE`.
    pub shared: bool,
    /// What is mapped.
    pub backing: Backing,
    /// Further flags.
    pub flags: Flags<MapFlag>,
}

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Here, in place of what is there: `MAP_FIXED`.
    Fixed(Address),
    /// Here, if nothing is there: `MAP_FIXED_NOREPLACE`.
    FixedNoReplace(Address),
    /// Here if nothing is there; otherwise elsewhere, as this handle.
    Hint(Address, Handle),
    /// Wherever the system likes, as this handle.
    Anywhere(Handle),
}

/// What is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Zeroes.
    Anonymous,
    /// A file.
    File {
        /// Which.
        file: u8,
        /// From which byte on.
        offset: u64,
        /// Through a descriptor that was opened for reading only.
        read_only: bool,
    },
}

/// An `mremap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// What there is.
    pub old: Range,
    /// How many bytes there shall be.
    pub bytes: u64,
    /// Where, with `MREMAP_FIXED`.
    pub fixed: Option<Address>,
    /// The name of what moves to a place of the system's choice.
    pub handle: Option<Handle>,
    /// Further flags.
    pub flags: Flags<RemapFlag>,
}

/// Some bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which file.
    pub file: u8,
    /// From which byte on.
    pub offset: u64,
    /// How many bytes, at most [`TRANSFER`].
    pub bytes: u64,
}

/// How much an access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    Byte,
    /// Eight, at an address that is a multiple of eight.
    Word,
}

impl Width {
    /// In bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Width::Byte => 1,
            Width::Word => 8,
        }
    }
}

/// Rights.
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
    /// None.
    pub const NONE: Prot = Prot::new(false, false, false);
    /// Reading.
    pub const READ: Prot = Prot::new(true, false, false);
    /// Reading and writing.
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

/// As `/proc/PID/maps` shows them.
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

/// What `madvise` is told.
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
    /// All, with their names.
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

    /// What a sequence calls it.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(advice, _)| *advice == self);
        found.map_or("", |(_, name)| name)
    }
}
