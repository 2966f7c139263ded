//! Other numbers for what events name.

use crate::{Call, Event, What};

/// New numbers, by the old ones.
pub(crate) trait Renumber {
    fn thread(&self, number: u32) -> u32;
    fn process(&self, number: u32) -> u32;
    fn file(&self, number: u32) -> u32;
    fn mapping(&self, number: u32) -> u32;
}

impl Event {
    /// Renumbers all that the event names.
    pub(crate) fn renumber(&mut self, by: &impl Renumber) {
        self.thread = by.thread(self.thread);
        for mapping in self.what.mappings_mut() {
            *mapping = by.mapping(*mapping);
        }
        match &mut self.what {
            What::Start { thread } | What::Fork { thread, .. } | What::Wake { thread } => {
                *thread = by.thread(*thread);
            }
            What::Wait {
                by: Some((thread, _)),
                ..
            } => *thread = by.thread(*thread),
            What::Hold { process, .. } => *process = by.process(*process),
            What::Call { call, .. } | What::Given { call } => {
                if let Call::Map {
                    file: Some((file, _)),
                    ..
                } = call
                {
                    *file = by.file(*file);
                }
            }
            What::Fault { .. }
            | What::Wait { by: None, .. }
            | What::Unknown
            | What::Exec
            | What::Exit => {}
        }
    }
}

impl What {
    /// The mappings that it names.
    pub(crate) fn mappings_mut(&mut self) -> Vec<&mut u32> {
        match self {
            What::Call { call, parts, .. } => {
                let parts = parts.iter_mut().map(|(place, _)| &mut place.mapping);
                call.mappings_mut().into_iter().chain(parts).collect()
            }
            What::Given { call } => call.mappings_mut(),
            What::Fault { at, .. } => vec![&mut at.mapping],
            _ => Vec::new(),
        }
    }
}
