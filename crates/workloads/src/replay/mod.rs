//! A recorded program, as a workload.
//!
//! An iteration is one run of the program: a process of its own, in which each recorded thread is a
//! [`Part`] that takes its [`Step`]s in order. Threads and processes start where the recording has
//! them start. A part waits for another ([`Act::After`]) only where the recorded thread did, or
//! where both worked on the same memory (Weiss et al., "ROOT: Replaying Multithreaded Traces with
//! Resource-Oriented Ordering", SOSP 2013). All other order is the system's.
//!
//! The operations counted are the program's own calls on memory.

mod part;

pub use part::{Addresses, Part};

use crate::{Body, Counter, Error, Feature, Needs, Prot, System, Workload};
use alloc::boxed::Box;
use part::Tick;

/// A recorded program, ready to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Replay {
    /// The steps of each part. The first part is the program's first thread.
    pub parts: Box<[Box<[Step]>]>,
    /// The number of mappings that the parts tell apart.
    pub mappings: usize,
    /// The lengths of the files that are mapped, in bytes.
    pub files: Box<[usize]>,
    /// The number of operations that all parts count in an iteration.
    pub operations: u64,
    /// The most bytes that the program touches.
    pub memory: usize,
}

/// A step of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub act: Act,
    /// True if this completes one of the recorded calls.
    pub counts: bool,
    /// True if another part waits for this step.
    pub is_awaited: bool,
}

/// A place in a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The mapping's number.
    pub mapping: u32,
    /// Bytes from its start.
    pub offset: usize,
}

/// The content behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Zeroes, private.
    Anonymous,
    /// Zeroes, shared with the processes that inherit the mapping.
    SharedAnonymous,
    /// A file, by its number; writes are private.
    PrivateFile(u32),
    /// A file, by its number; writes go to it.
    SharedFile(u32),
}

/// How a part comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As a thread of the process that starts it.
    Thread,
    /// As the first thread of a copy of that process.
    Copy,
    /// As the first thread of a process that has no memory yet.
    Fresh,
}

/// An operation on a range of memory that leaves the rights of its mappings what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// `MADV_DONTNEED`.
    Discard,
    /// `MADV_FREE`.
    Free,
    /// `MADV_PAGEOUT`.
    PageOut,
    /// `MADV_COLD`.
    Cold,
    /// `MADV_REMOVE`.
    Remove,
    /// `MADV_NORMAL`.
    Normal,
    /// `MADV_RANDOM`.
    Random,
    /// `MADV_SEQUENTIAL`.
    Sequential,
    /// `MADV_DONTDUMP`.
    DontDump,
    /// `MADV_DODUMP`.
    DoDump,
    /// `MADV_POPULATE_READ`.
    PopulateRead,
    /// `MADV_POPULATE_WRITE`.
    PopulateWrite,
    /// `mlock`.
    Lock,
    /// `munlock`.
    Unlock,
    /// `msync`.
    Sync,
    /// `mincore`.
    InCore,
}

/// What a part does. Lengths are in bytes, whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Computes for this number of nanoseconds.
    Compute(u64),
    /// Sleeps for this number of nanoseconds.
    Sleep(u64),
    /// Waits until `part` has done its first `steps` steps.
    After {
        part: u32,
        steps: u32,
    },
    /// Starts another part.
    Begin {
        part: u32,
        start: Start,
    },
    /// Maps memory, over what is mapped at `over` if that is given.
    Map {
        mapping: u32,
        length: usize,
        prot: Prot,
        content: Content,
        over: Option<Spot>,
    },
    Unmap {
        at: Spot,
        length: usize,
    },
    Protect {
        at: Spot,
        length: usize,
        prot: Prot,
    },
    Treat {
        at: Spot,
        length: usize,
        how: Treatment,
    },
    /// Makes a mapping of `length` bytes `new_length` bytes long; it is at `to` from now on.
    Remap {
        at: Spot,
        length: usize,
        new_length: usize,
        to: Spot,
    },
    /// Makes the heap, which is `mapping`, this long.
    Break {
        mapping: u32,
        length: usize,
    },
    /// Touches this number of pages, one after the other.
    Touch {
        at: Spot,
        pages: u32,
        write: bool,
    },
    /// Looks at the process's next mappings and their pages, after the last at the first.
    Scan,
}

impl Replay {
    /// It as a workload called `name`.
    pub const fn workload(
        &'static self,
        name: &'static str,
        description: &'static str,
    ) -> Workload {
        Workload {
            name,
            description,
            unit: "calls",
            needs: Needs {
                files: !self.files.is_empty(),
                brk: true,
                protect: true,
                discard: true,
                memory: self.memory,
                features: &[Feature::Recording],
            },
            size: 0,
            body: Body::Replay(self),
        }
    }
}

/// Runs the program again and again.
pub(crate) fn run<S: System>(
    replay: &'static Replay,
    system: &mut S,
    tick: &Counter,
) -> Result<(), Error> {
    let files = replay.files.iter().enumerate();
    let files = files.map(|(number, &length)| system.recorded_file(number, length));
    let files = files.collect::<Result<_, Error>>()?;
    loop {
        system.clear_steps()?;
        // SAFETY: the counter outlives the part, whose end is waited for.
        let tick_of_parts = unsafe { Tick::new(tick) };
        let first = Part::first(replay, Clone::clone(&files), tick_of_parts);
        let child = system.begin(first, Start::Fresh)?;
        part::expect_success(system, child)?;
        if !tick.add(0) {
            return Ok(());
        }
    }
}
