//! New numbers of what stays.

use crate::{Call, Event, What};

/// The new number of each thread, process and file that stays, by its old one.
pub struct Numbers {
    pub threads: Vec<u32>,
    pub processes: Vec<u32>,
    pub files: Vec<u32>,
}

impl Numbers {
    /// Of those that are true.
    pub fn new(threads: &[bool], processes: &[bool], files: &[bool]) -> Self {
        Numbers {
            threads: without_gaps(threads),
            processes: without_gaps(processes),
            files: without_gaps(files),
        }
    }

    /// Renumbers what an event names, which stays.
    pub fn apply(&self, event: &mut Event) {
        let renumber = |number: &mut u32| *number = self.threads[*number as usize];
        renumber(&mut event.thread);
        match &mut event.what {
            What::Start { thread } | What::Fork { thread, .. } | What::Wake { thread } => {
                renumber(thread);
            }
            What::Wait {
                by: Some((thread, _)),
                ..
            } => renumber(thread),
            What::Hold { process, .. } => *process = self.processes[*process as usize],
            What::Call { call, .. } | What::Given { call } => {
                if let Call::Map {
                    file: Some((file, _)),
                    ..
                } = call
                {
                    *file = self.files[*file as usize];
                }
            }
            _ => {}
        }
    }
}

/// The number of those before that stay.
fn without_gaps(stays: &[bool]) -> Vec<u32> {
    let counted = stays.iter().scan(0, |next, stays| {
        let number = *next;
        *next += u32::from(*stays);
        Some(number)
    });
    counted.collect()
}
