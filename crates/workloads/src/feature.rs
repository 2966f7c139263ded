//! What a workload asks of a system beyond what every one has.

/// A group of calls that not every system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Growing and moving mappings.
    Remap,
    /// Sending pages to swap space.
    PageOut,
    /// Waking those who wait at a word of memory.
    Futexes,
    /// Asking whether a descriptor is ready.
    Poll,
    /// Pipes.
    Pipes,
    /// Connected sockets.
    Sockets,
    /// Locks on a part of a file.
    RecordLocks,
    /// Files with names, which one can open.
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
    /// children that go on in a copy of their parent's memory.
    Family,
    /// Tasks that tasks start beside themselves.
    Partners,
    /// Pipes and memory that the tasks which run together have in common.
    Neighbours,
}

impl Feature {
    /// The word used in output, for what a system has or lacks.
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
        }
    }

    /// Whether a task that uses it has children, which it must be left time to wait for.
    pub const fn makes_children(self) -> bool {
        matches!(
            self,
            Feature::Fork | Feature::Exec | Feature::Compiler | Feature::Family | Feature::Partners
        )
    }
}
