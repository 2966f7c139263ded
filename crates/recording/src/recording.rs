//! A recording as a whole.

use crate::{Environment, Event, File, What};

/// How a process came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Birth {
    /// It was there when the recording began.
    Existed,
    /// A thread of the recording started it.
    Forked,
    /// It is no part of the program, but acts on its memory.
    Foreign,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number in the system.
    pub pid: u32,
    /// Its last name.
    pub name: String,
    pub birth: Birth,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number in the system.
    pub tid: u32,
    /// Its process, by number in the recording.
    pub process: u32,
    /// Its last name.
    pub name: String,
}

/// What is not in a recording although it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Records that the kernel dropped.
    pub records: u64,
    /// Calls and faults whose memory is unknown.
    pub unknown: u64,
    /// Times that the kernel took a thread off a CPU and no record said so: other events of the
    /// thread are missing then, too.
    pub switches: u64,
}

/// A recording, whole in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    pub environment: Environment,
    /// Nanoseconds from its beginning to its end.
    pub nanoseconds: u64,
    /// Bytes of a page.
    pub page: u32,
    /// Processes, threads and files have their index as their number.
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub files: Vec<File>,
    /// In the order of time; events of one thread in its order.
    pub events: Vec<Event>,
    pub lost: Lost,
    /// The share of a loop of calls that recording it takes, as measured when it began.
    pub cost: Option<f64>,
}

impl Recording {
    /// One more than the highest number of a mapping.
    pub fn mappings(&self) -> u32 {
        let made = self.events.iter().filter_map(|event| match &event.what {
            What::Call { call, .. } | What::Given { call } => call.made(),
            _ => None,
        });
        made.max().map_or(0, |last| last + 1)
    }
}
