//! What threads did.

/// A place in a mapping.
///
/// A mapping is what one call mapped, and keeps its number while parts of it are unmapped, moved or
/// protected. Numbers are unique in a recording. A forked process has its parent's mappings, under
/// the same numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The mapping's number.
    pub mapping: u32,
    /// Bytes from its start.
    pub offset: u64,
}

/// The rights of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prot {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
}

/// Who sees what is written to a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// The process.
    Private,
    /// All that map the same file, or that inherit the mapping.
    Shared,
}

/// A file that is mapped, or an object of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path; empty if it is left out.
    pub name: String,
    /// Its length in bytes, at least as far as it was mapped.
    pub length: u64,
}

/// Advice for a range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// `MADV_DONTNEED`, `MADV_DONTNEED_LOCKED`.
    Discard,
    /// `MADV_FREE`.
    Free,
    /// `MADV_PAGEOUT`.
    PageOut,
    /// `MADV_COLD`.
    Cold,
    /// `MADV_REMOVE`.
    Remove,
    /// `MADV_POPULATE_READ`.
    PopulateRead,
    /// `MADV_POPULATE_WRITE`.
    PopulateWrite,
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NoHuge,
    /// Any other, by its number.
    Other(u32),
}

/// A call that works on memory. Lengths are in bytes, as the caller gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `mmap`, `shmat`: makes `mapping`.
    Map {
        mapping: u32,
        length: u64,
        prot: Prot,
        sharing: Sharing,
        /// The number of the file and the offset in it; none if it is anonymous.
        file: Option<(u32, u64)>,
        /// The start of what it replaces, where the caller fixed the address inside mappings.
        over: Option<Place>,
        /// `MAP_POPULATE` or `MAP_LOCKED`.
        populate: bool,
        /// `MAP_NORESERVE`.
        no_reserve: bool,
        /// `MAP_HUGETLB`.
        huge: bool,
    },
    /// `munmap`, `shmdt`.
    Unmap { at: Place, length: u64 },
    /// `mprotect`, `pkey_mprotect`.
    Protect { at: Place, length: u64, prot: Prot },
    /// `madvise`, `process_madvise`.
    Advise {
        at: Place,
        length: u64,
        advice: Advice,
    },
    /// `mremap`. What moves becomes `to`, a mapping of its own; none if it stays.
    Remap {
        at: Place,
        length: u64,
        new_length: u64,
        to: Option<u32>,
    },
    /// `brk`: the heap, which is `mapping`, has this length from now on.
    Break { mapping: u32, length: u64 },
    /// `mlock`, `mlock2`.
    Lock { at: Place, length: u64 },
    /// `munlock`.
    Unlock { at: Place, length: u64 },
    /// `msync`.
    Sync { at: Place, length: u64 },
    /// `mincore`.
    InCore { at: Place, length: u64 },
    /// Any other call on memory, by its number on x86-64.
    Other { number: u32 },
}

/// Why a page was not mapped, or not for this access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// It was not mapped.
    Missing,
    /// It was mapped, and not for writing: copied on write, or made writable.
    Protected,
}

/// What a thread waited for outside of memory calls and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitFor {
    Futex,
    Pipe,
    Poll,
    Child,
    /// A time; no other thread is waited for.
    Time,
    /// Something else: a disk, a network, a signal.
    Other,
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A call, and its error number, 0 if it succeeded. A range that spans several mappings is one
    /// call: `parts` are the mappings' parts behind the first, each a place and a length. The
    /// call's own length is that of all parts.
    Call {
        call: Call,
        error: u16,
        parts: Vec<(Place, u64)>,
    },
    /// A mapping that exists without a call of the program's: it was there when the recording
    /// began, or `execve` made it, or a thread that is left out did. The call is a [`Call::Map`] or
    /// a [`Call::Break`]; or it is a [`Call::Unmap`], [`Call::Protect`] or [`Call::Remap`], which
    /// makes a mapping what it has become since. A mapping that is shared may be given to several
    /// processes under one number.
    Given { call: Call },
    /// Faults at `pages` consecutive pages from `at` on, one after the other.
    Fault {
        at: Place,
        pages: u32,
        write: bool,
        kind: FaultKind,
        /// True if the kernel touched the memory, for a system call.
        in_kernel: bool,
    },
    /// A fault, or a call, whose memory is unknown.
    Unknown,
    /// It started a thread of its process.
    Start { thread: u32 },
    /// It started a process, whose first thread is `thread`: a copy of its own, or one that
    /// borrows its memory until it executes a program (`vfork`).
    Fork { thread: u32, borrows: bool },
    /// Its process executes a program: its mappings are gone, and its other threads.
    Exec,
    /// It ended; with the last thread of a process its mappings go.
    Exit,
    /// It slept. `by` woke it: with the number of that thread's [`What::Wake`] events before.
    /// Without it, time or something outside did, after this number of `nanoseconds`.
    Wait {
        on: WaitFor,
        nanoseconds: u64,
        by: Option<(u32, u32)>,
    },
    /// It woke this thread.
    Wake { thread: u32 },
    /// It held the `mmap_lock` of another process: a reader of `/proc`, a scanner of the kernel.
    Hold {
        process: u32,
        write: bool,
        nanoseconds: u64,
    },
}

/// An event of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds from the beginning of the recording; of calls and waits, when they were over.
    pub at: u64,
    /// The thread's number.
    pub thread: u32,
    /// Nanoseconds that the thread was on a CPU since its event before, without those in calls and
    /// faults that are events. Other calls, such as `read`, count.
    pub computed: u64,
    pub what: What,
}
