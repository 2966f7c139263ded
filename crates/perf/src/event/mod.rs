//! Events: how they are requested, carried and decoded.

mod attributes;
mod counter;
mod format;
mod record;
mod ring;
mod tracefs;

pub(crate) use attributes::{Attributes, Scope, sampled_depth};
pub(crate) use counter::{Counter, Target};
pub(crate) use format::Field;
pub(crate) use record::{Decoder, Reader, Record, records};
pub(crate) use ring::Ring;
pub(crate) use tracefs::{
    HoldFields, HoldTracepoints, Tracefs, Tracepoints, WakeTracepoint, has_first_numbers,
};

/// The kind of an event's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Ticks of a clock, with a stack.
    Clock,
    /// `lock:contention_begin`, with a stack.
    Begin,
    /// `lock:contention_end`.
    End,
    /// Some hits of `sched:sched_switch`, with the stack of the thread switched out.
    Switch,
    /// `mmap_lock:mmap_lock_acquire_returned`, with the kernel's part of the stack.
    Acquire,
    /// `mmap_lock:mmap_lock_released`.
    Release,
    /// `sched:sched_waking`, with the stack of the thread that wakes another.
    Wake,
}

/// An event at `time`, in nanoseconds of the monotonic clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stamped<E = Event> {
    pub time: u64,
    pub event: E,
}

/// The thread that was running, by the numbers of this process's pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub pid: u32,
    pub tid: u32,
}

/// A stack as the kernel delivers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The addresses from the leaf on, including the kernel's context markers.
    pub addresses: Box<[u64]>,
    /// The user's, as of its entry to the kernel; none for a kernel thread.
    pub registers: Option<Registers>,
    /// The words on top of the user's stack, as many as requested.
    pub top: Box<[u64]>,
    /// True if it has as many addresses as the kernel delivers: callers are missing then.
    pub cut: bool,
}

/// Registers of a user thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    /// The first argument of a function or system call.
    pub argument: u64,
    /// The frame pointer.
    pub frame: u64,
    /// The return address, on machines that keep it in a register.
    pub link: Option<u64>,
    /// The stack pointer.
    pub stack: u64,
}

/// The requested registers, by the kernel's numbers and in its order: those of [`Registers`].
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: &[u32] = &[0, 29, 30, 31];
/// The requested registers, by the kernel's numbers and in its order: those of [`Registers`].
#[cfg(not(target_arch = "aarch64"))]
pub(crate) const REGISTERS: &[u32] = &[5, 6, 7];

/// Words from the top of the user's stack requested with each hit of a tracepoint. There may be
/// 100,000 hits a second, so it is just enough for nested functions of the C library without frame
/// pointers.
pub(crate) const TOP: usize = 64;
/// Words requested with each sample: enough for a program with small frames and no frame pointers.
pub(crate) const TOP_OF_SAMPLE: usize = 256;

#[cfg(test)]
impl<const N: usize> From<[u64; N]> for Chain {
    fn from(addresses: [u64; N]) -> Chain {
        Chain {
            addresses: addresses.into(),
            ..Chain::default()
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Sample {
        thread: Thread,
        cpu: u32,
        chain: Chain,
    },
    Begin {
        thread: Thread,
        lock: u64,
        flags: u32,
        chain: Chain,
    },
    End {
        thread: Thread,
        lock: u64,
    },
    /// The thread has the `mmap_lock` of the address space `space`, from now on for writing if
    /// `write`: it may have had it for writing before.
    Acquire {
        thread: Thread,
        space: u64,
        write: bool,
        chain: Chain,
    },
    Release {
        thread: Thread,
        space: u64,
    },
    /// The thread is about to go off its CPU, here.
    Leave {
        thread: Thread,
        state: i64,
        chain: Chain,
    },
    /// The thread goes off its CPU; `preempted` if it wants to run on.
    Off {
        thread: Thread,
        preempted: bool,
    },
    /// The thread wakes the one with the number `woken`.
    Wake {
        thread: Thread,
        woken: u32,
        chain: Chain,
    },
    /// The thread is on a CPU again, or for the first time.
    Resume {
        thread: Thread,
    },
    Fork {
        child: Thread,
        parent: Thread,
    },
    Exit {
        thread: Thread,
    },
    Comm {
        thread: Thread,
        name: String,
        exec: bool,
    },
    Map {
        pid: u32,
        mapping: Mapping,
    },
    Lost(u64),
    /// There was no room for some of the events that tell who holds locks.
    LostHolds,
    /// Events that tell who holds locks are recorded from now on, or no longer.
    Holds(bool),
    Throttled,
}

impl Event {
    /// What it costs to record it, if it tells who holds a lock: a multiple of what it costs to
    /// record a release.
    pub fn cost_of_hold(&self) -> usize {
        match self {
            Event::Acquire { .. } | Event::Release { .. } => 1,
            // It has the user's stack.
            Event::Wake { .. } => 4,
            _ => 0,
        }
    }
}

/// Executable memory: `path` from `offset` is mapped at `start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub path: String,
}
