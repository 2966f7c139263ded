//! Names of all processes, watched or not.

use super::{Image, Process, scan};
use crate::event::Event;
use std::collections::HashMap;

/// Processes without their executable memory, as of the last event followed.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<u32, Process>);

impl Names {
    /// Follows names, births and deaths.
    pub fn follow(&mut self, event: &Event) {
        match event {
            Event::Comm { thread, name, .. } if thread.tid == thread.pid => {
                self.set(thread.pid, name.clone());
            }
            Event::Fork { child, parent } if child.pid != parent.pid => {
                // The number may be that of a process that has ended.
                self.0.remove(&child.pid);
                if let Some(parent) = self.0.get(&parent.pid) {
                    self.set(child.pid, parent.name.clone());
                }
            }
            Event::Exit { thread } if thread.tid == thread.pid => {
                self.0.remove(&thread.pid);
            }
            _ => {}
        }
    }

    /// A process by its number. One that has not been met is looked up; it may have ended, or
    /// run outside of this container.
    pub fn of(&mut self, pid: u32) -> &Process {
        self.0.entry(pid).or_insert_with(|| {
            let name = scan::name(pid);
            named(name.unwrap_or_else(|_| "[unknown]".to_owned()))
        })
    }

    fn set(&mut self, pid: u32, name: String) {
        self.0.insert(pid, named(name));
    }
}

fn named(name: String) -> Process {
    let image = Image::new();
    Process { name, image }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Thread;

    #[test]
    fn a_process_has_its_own_name_or_its_parents() {
        let mut names = Names::default();
        let own = std::process::id();
        let number = |pid| Thread { pid, tid: pid };
        // Numbers that no process has.
        let (child, gone) = (u32::MAX - 1, u32::MAX);
        let looked_up = names.of(own).name.clone();
        assert!(!looked_up.is_empty() && looked_up != "[unknown]");
        names.follow(&Event::Fork {
            child: number(child),
            parent: number(own),
        });
        assert_eq!(names.of(child).name, looked_up);
        names.follow(&Event::Comm {
            thread: number(child),
            name: "agent".to_owned(),
            exec: true,
        });
        assert_eq!(names.of(child).name, "agent");
        assert_eq!(names.of(gone).name, "[unknown]");
    }
}
