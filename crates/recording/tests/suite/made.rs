//! Recordings made by hand, step by step.

pub use super::support::{BOTH as READ_WRITE, PAGE, at as place};

use super::support::anonymous;
use recording::{Birth, Call, Environment, Event, FaultKind, Process, Recording, Thread, What};

/// A recording to which events are added.
pub struct Made(pub Recording);

impl Made {
    /// Of one process, with threads of these names.
    pub fn new(threads: &[&str]) -> Self {
        let thread = |(name, tid): (&&str, u32)| Thread {
            tid,
            process: 0,
            name: (*name).to_owned(),
        };
        let process = Process {
            pid: 100,
            name: "server".to_owned(),
            birth: Birth::Existed,
        };
        Made(Recording {
            environment: Environment {
                kernel: "6.18.0".to_owned(),
                cpus: 2,
                huge_pages: "madvise".to_owned(),
                overcommit: 0,
                max_map_count: 65_530,
                variables: vec![("MALLOC_ARENA_MAX".to_owned(), "2".to_owned())],
            },
            page: PAGE as u32,
            processes: vec![process],
            threads: threads.iter().zip(100..).map(thread).collect(),
            ..Recording::default()
        })
    }

    /// Adds an event at this time in microseconds, before which the thread computed for one.
    pub fn event(&mut self, at: u64, thread: u32, what: What) -> &mut Self {
        self.0.events.push(Event {
            at: at * 1000,
            thread,
            computed: 1000,
            what,
        });
        self.0.nanoseconds = at * 1000;
        self
    }

    /// Adds a call that succeeds.
    pub fn call(&mut self, at: u64, thread: u32, call: Call) -> &mut Self {
        let what = What::Call {
            call,
            error: 0,
            parts: Vec::new(),
        };
        self.event(at, thread, what)
    }
}

/// Maps private anonymous memory of this many pages.
pub fn map(mapping: u32, pages: u64) -> Call {
    anonymous(mapping, pages, None)
}

/// Unmaps pages of a mapping.
pub fn unmap(mapping: u32, from: u64, pages: u64) -> Call {
    Call::Unmap {
        at: place(mapping, from),
        length: pages * PAGE,
    }
}

/// Writes to pages of a mapping for the first time.
pub fn touch(mapping: u32, from: u64, pages: u32) -> What {
    What::Fault {
        at: place(mapping, from),
        pages,
        write: true,
        kind: FaultKind::Missing,
        in_kernel: false,
    }
}
