//! Two recordings at the same time.

use crate::Recording;
use crate::renumber::Renumber;

impl Recording {
    /// This program and another, which begin together.
    pub fn and(mut self, other: &Recording) -> Self {
        let shift = Shift {
            processes: self.processes.len() as u32,
            threads: self.threads.len() as u32,
            files: self.files.len() as u32,
            mappings: self.mappings(),
        };
        self.processes.extend(other.processes.iter().cloned());
        self.files.extend(other.files.iter().cloned());
        let threads = other.threads.iter().cloned();
        self.threads.extend(threads.map(|mut thread| {
            thread.process += shift.processes;
            thread
        }));
        let others = other.events.iter().cloned();
        self.events.extend(others.map(|mut event| {
            event.renumber(&shift);
            event
        }));
        // Stable: the order of events of one recording stays.
        self.events.sort_by_key(|event| event.at);
        self.nanoseconds = self.nanoseconds.max(other.nanoseconds);
        self.lost.records += other.lost.records;
        self.lost.unknown += other.lost.unknown;
        self.lost.switches += other.lost.switches;
        self
    }
}

/// The numbers by which those of the second recording are higher.
struct Shift {
    processes: u32,
    threads: u32,
    files: u32,
    mappings: u32,
}

impl Renumber for Shift {
    fn thread(&self, number: u32) -> u32 {
        number + self.threads
    }

    fn process(&self, number: u32) -> u32 {
        number + self.processes
    }

    fn file(&self, number: u32) -> u32 {
        number + self.files
    }

    fn mapping(&self, number: u32) -> u32 {
        number + self.mappings
    }
}
