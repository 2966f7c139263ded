//! Two recordings at the same time.

use crate::{Call, Event, Recording, What};

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
        let others = other.events.iter().map(|event| shift.event(event.clone()));
        self.events.extend(others);
        // Stable: the order of events of one recording stays.
        self.events.sort_by_key(|event| event.at);
        self.nanoseconds = self.nanoseconds.max(other.nanoseconds);
        self.lost.records += other.lost.records;
        self.lost.unknown += other.lost.unknown;
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

impl Shift {
    fn event(&self, mut event: Event) -> Event {
        event.thread += self.threads;
        match &mut event.what {
            What::Call { call, parts, .. } => {
                self.call(call);
                for (place, _) in parts {
                    place.mapping += self.mappings;
                }
            }
            What::Given { call } => self.call(call),
            What::Fault { at, .. } => at.mapping += self.mappings,
            What::Start { thread } | What::Fork { thread, .. } | What::Wake { thread } => {
                *thread += self.threads;
            }
            What::Wait {
                by: Some((thread, _)),
                ..
            } => *thread += self.threads,
            What::Hold { process, .. } => *process += self.processes,
            What::Wait { by: None, .. } | What::Unknown | What::Exec | What::Exit => {}
        }
        event
    }

    fn call(&self, call: &mut Call) {
        for mapping in call.mappings_mut() {
            *mapping += self.mappings;
        }
        if let Call::Map {
            file: Some((file, _)),
            ..
        } = call
        {
            *file += self.files;
        }
    }
}
