//! Features that a workload needs of a system beyond the common ones.

/// A group of calls that not every system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Growing and moving mappings.
    Remap,
    /// Sending pages to swap space.
    PageOut,
    /// Waking tasks that wait at a word of memory.
    Futexes,
    /// Checking if a descriptor is ready.
    Poll,
    Pipes,
    /// Connected sockets.
    Sockets,
    /// Locks on a part of a file.
    RecordLocks,
    /// Files with names, by which they can be opened.
    Names,
    /// Signals and their handlers.
    Signals,
    /// Making processes and waiting for them.
    Fork,
    /// Starting programs.
    Exec,
    /// A program that compiles, see [`compile`](crate::compile).
    Compiler,
    /// Tasks whose processes are copies of one, see [`System::daemon`](crate::System::daemon), and
    /// children that continue in a copy of their parent's memory.
    Family,
    /// Tasks that a task starts as its partners.
    Partners,
    /// Pipes and memory shared by the tasks that run together.
    Neighbours,
    /// Looking at mappings and their pages, as readers of `/proc` do.
    Scan,
    /// All that a recorded program does, see [`replay`](crate::replay).
    Recording,
}

impl Feature {
    /// The feature's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::Remap => "mremap",
            Feature::PageOut => "paging out",
            Feature::Futexes => "futexes",
            Feature::Poll => "poll",
            Feature::Pipes => "pipes",
            Feature::Sockets => "sockets",
            Feature::RecordLocks => "record locks",
            Feature::Names => "files with names",
            Feature::Signals => "signals",
            Feature::Fork => "fork",
            Feature::Exec => "exec",
            Feature::Compiler => "a compiler",
            Feature::Family => "families of processes",
            Feature::Partners => "partners of tasks",
            Feature::Neighbours => "what tasks have in common",
            Feature::Scan => "smaps",
            Feature::Recording => "recorded programs",
        }
    }

    /// Returns true if a task that uses it has children, for which it must be left time to wait.
    pub const fn makes_children(self) -> bool {
        matches!(
            self,
            Feature::Fork
                | Feature::Exec
                | Feature::Compiler
                | Feature::Family
                | Feature::Partners
                | Feature::Recording
        )
    }
}
