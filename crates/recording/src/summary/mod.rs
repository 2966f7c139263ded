//! What is in a recording, in figures.

mod tally;

use crate::{End, Error, Reader, Recording, Role, WaitFor};
use std::io::Read;
use tally::Tally;

/// What is in a recording, in figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The number of events.
    pub events: u64,
    /// The busiest first. Processes that are no part of the program have none.
    pub groups: Vec<Group>,
    /// The most frequent ones first.
    pub calls: Vec<Calls>,
    /// Pages that were touched and not mapped, and those that were mapped but not for the access.
    pub missing: u64,
    pub protected: u64,
    /// Faults and calls whose memory is unknown.
    pub unknown: u64,
    /// The longest first.
    pub holders: Vec<Holder>,
    /// Parts of equal length, but for the last, in the order of time.
    pub spans: Vec<Span>,
}

/// Threads of one role.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub role: Role,
    /// The number of their processes.
    pub processes: usize,
    pub work: Work,
}

/// What threads did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    pub calls: u64,
    /// Pages.
    pub faults: u64,
    /// Nanoseconds that they existed, computed, and slept for each of [`WaitFor::ALL`].
    pub existed: u64,
    pub computed: u64,
    pub slept: [u64; WaitFor::ALL.len()],
    /// Nanoseconds from their last event to the end of the recording: a sleep that goes on, as a
    /// rule.
    pub quiet: u64,
}

/// The calls of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    pub name: &'static str,
    pub count: u64,
    pub failed: u64,
    /// Those that succeeded worked on this many.
    pub bytes: u64,
}

/// A process that held the lock of another one's memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    pub process: String,
    pub count: u64,
    pub nanoseconds: u64,
}

/// A part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// Its end, in nanoseconds from the beginning of the recording.
    pub until: u64,
    pub calls: u64,
    /// Pages.
    pub faults: u64,
    /// The mappings at its end, and their bytes.
    pub mappings: u64,
    pub bytes: u64,
}

impl Summary {
    /// Of a recording in memory.
    pub fn of(recording: &Recording) -> Summary {
        let mut tally = Tally::default();
        for event in &recording.events {
            tally.add(event, &recording.threads);
        }
        tally.finish(recording)
    }

    /// Of a file, without holding its events; with all else that is in the recording, and how it
    /// ends.
    pub fn read(from: impl Read) -> Result<(Summary, Recording, End), Error> {
        let (mut reader, mut tally) = (Reader::new(from)?, Tally::default());
        while let Some(event) = reader.next() {
            tally.add(&event?, &reader.known().threads);
        }
        let (recording, end) = reader.finish();
        Ok((tally.finish(&recording), recording, end))
    }
}
