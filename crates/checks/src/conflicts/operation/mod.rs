//! The operations.

mod worker;

pub use worker::{Part, Worker};

/// An operation of a CPU on its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Maps a region.
    Map,
    /// Unmaps a region with pages in it.
    Unmap,
    /// Takes the right to write from a region with pages in it.
    Protect,
    /// Writes to pages for the first time.
    Fault,
    /// Writes to pages that a child shares.
    Copy,
    /// Drops pages.
    Discard,
    /// Makes pages old.
    Cold,
    /// Sends pages to the swap space.
    PageOut,
    /// Brings pages from the swap space.
    PageIn,
    /// Advises that children do not get a region.
    DontFork,
    /// Locks pages in memory.
    Lock,
    /// Unlocks pages in memory.
    Unlock,
    /// Makes a region larger where it is.
    Grow,
    /// Moves a region with pages in it.
    Move,
    /// Moves the heap's end up and writes there.
    Brk,
    /// Maps a part of the file, shared.
    MapFile,
    /// Unmaps a part of the file with pages in it.
    UnmapFile,
    /// Reads pages of the file that are in memory.
    ReadFile,
    /// Reads pages of the file that are not.
    LoadFile,
    /// Writes to pages of the file.
    WriteFile,
    /// Writes to pages of the file that are mapped privately.
    CopyFile,
    /// Writes dirty pages of the file to its store.
    Sync,
    /// Looks at all mappings and pages of a process.
    Scan,
    /// Makes a child of a process with pages.
    Fork,
    /// Makes a process with pages empty.
    Exec,
    /// Ends a process with pages.
    Exit,
    /// Gets a handle of the file.
    Open,
    /// Gives a handle of the file back.
    Close,
    /// Lets a task sleep and wake, without use of memory.
    Tasks(Dialogue),
}

/// How a task sleeps until something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialogue {
    /// It sleeps for a time, without another task.
    Nap,
    /// It sleeps until another task, which it has unparked, unparks it.
    Wake,
    /// Until another task, which has read its byte from a pipe, writes one.
    Pipe,
    /// Until another task, which it has woken by a futex, wakes it by one.
    Futex,
}

impl Dialogue {
    /// Returns true if another task takes part.
    pub fn takes_two(self) -> bool {
        self != Dialogue::Nap
    }

    fn name(self) -> &'static str {
        match self {
            Dialogue::Nap => "nap",
            Dialogue::Wake => "wake",
            Dialogue::Pipe => "pipe",
            Dialogue::Futex => "futex",
        }
    }
}

impl Operation {
    /// The operations of two CPUs that share no page.
    pub const APART: [Operation; 25] = [
        Operation::Map,
        Operation::Unmap,
        Operation::Protect,
        Operation::Fault,
        Operation::Copy,
        Operation::Discard,
        Operation::Cold,
        Operation::PageOut,
        Operation::PageIn,
        Operation::DontFork,
        Operation::Lock,
        Operation::Unlock,
        Operation::Grow,
        Operation::Move,
        Operation::Brk,
        Operation::MapFile,
        Operation::UnmapFile,
        Operation::ReadFile,
        Operation::LoadFile,
        Operation::WriteFile,
        Operation::CopyFile,
        Operation::Sync,
        Operation::Fork,
        Operation::Exec,
        Operation::Exit,
    ];

    /// The operations of two processes that use the same pages of a file, or have them mapped.
    pub const OF_ONE_PAGE: [Operation; 10] = [
        Operation::MapFile,
        Operation::UnmapFile,
        Operation::ReadFile,
        Operation::WriteFile,
        Operation::CopyFile,
        Operation::Fork,
        Operation::Exec,
        Operation::Exit,
        Operation::Open,
        Operation::Close,
    ];

    pub const OF_TASKS: [Operation; 4] = [
        Operation::Tasks(Dialogue::Nap),
        Operation::Tasks(Dialogue::Wake),
        Operation::Tasks(Dialogue::Pipe),
        Operation::Tasks(Dialogue::Futex),
    ];

    /// The operation's name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Map => "map",
            Operation::Unmap => "unmap",
            Operation::Protect => "protect",
            Operation::Fault => "fault",
            Operation::Copy => "copy",
            Operation::Discard => "discard",
            Operation::Cold => "cold",
            Operation::PageOut => "pageout",
            Operation::PageIn => "pagein",
            Operation::DontFork => "dontfork",
            Operation::Lock => "lock",
            Operation::Unlock => "unlock",
            Operation::Grow => "grow",
            Operation::Move => "move",
            Operation::Brk => "brk",
            Operation::MapFile => "map-file",
            Operation::UnmapFile => "unmap-file",
            Operation::ReadFile => "read-file",
            Operation::LoadFile => "load-file",
            Operation::WriteFile => "write-file",
            Operation::CopyFile => "copy-file",
            Operation::Sync => "sync",
            Operation::Scan => "scan",
            Operation::Fork => "fork",
            Operation::Exec => "exec",
            Operation::Exit => "exit",
            Operation::Open => "open",
            Operation::Close => "close",
            Operation::Tasks(dialogue) => dialogue.name(),
        }
    }

    /// Returns true if the operation concerns a whole process, so that two threads of one cannot be
    /// paired.
    pub fn is_whole(self) -> bool {
        matches!(self, Operation::Fork | Operation::Exec | Operation::Exit)
    }
}

/// The placement of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where the VM puts them.
    Allocated,
    /// At fixed, adjacent addresses.
    Fixed,
}

impl Placement {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Allocated => "allocated",
            Placement::Fixed => "neighbours",
        }
    }
}
