//! Events: how they are asked for, carried and read.

mod attributes;
mod counter;
mod format;
mod record;
mod ring;
mod tracefs;

pub(crate) use attributes::{Attributes, Scope};
pub(crate) use counter::{Counter, Target};
pub(crate) use record::Decoder;
pub(crate) use ring::Ring;
pub(crate) use tracefs::{Tracefs, Tracepoints};

/// What an event's samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Ticks of a clock, with a stack.
    Clock,
    /// `lock:contention_begin`, with a stack.
    Begin,
    /// `lock:contention_end`.
    End,
    /// `sched:sched_switch`, with the stack of whom is switched out.
    Switch,
}

/// Something that happened at `time`, in nanoseconds of the monotonic clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stamped {
    pub time: u64,
    pub event: Event,
}

/// Who was running: numbers of this process's pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub pid: u32,
    pub tid: u32,
}

/// A stack as the kernel hands it over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Chain {
    /// From the leaf, with the kernel's markers between them.
    pub addresses: Box<[u64]>,
    /// What lies on top of the user's stack; 0 if there is none.
    pub top: u64,
}

#[cfg(test)]
impl<const N: usize> From<[u64; N]> for Chain {
    fn from(addresses: [u64; N]) -> Chain {
        Chain {
            addresses: addresses.into(),
            top: 0,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Sample {
        who: Who,
        chain: Chain,
    },
    Begin {
        who: Who,
        lock: u64,
        flags: u32,
        chain: Chain,
    },
    End {
        who: Who,
        lock: u64,
    },
    /// `prev` and `next` are numbers of the root namespace, whatever ours is.
    Switch {
        who: Who,
        prev: i64,
        state: i64,
        next: i64,
        chain: Chain,
    },
    Fork {
        child: Who,
        parent: Who,
    },
    Exit {
        who: Who,
    },
    Comm {
        who: Who,
        name: String,
        exec: bool,
    },
    Map {
        pid: u32,
        mapping: Mapping,
    },
    Lost(u64),
    Throttled,
}

/// Executable memory: `path` from `offset` lies at `start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub path: String,
}
