//! The watched processes and threads.

use super::{Files, Image, Renumbered, scan};
use crate::event::{Event, Thread};
use std::collections::{HashMap, HashSet};

/// A watched process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Its command.
    pub name: String,
    /// Its executable memory.
    pub image: Image,
}

/// The watched processes and their threads, as of the last event followed.
#[derive(Debug, Default)]
pub(crate) struct Family {
    processes: HashMap<u32, Process>,
    /// The process of each thread.
    threads: HashMap<u32, u32>,
    /// The names of threads that have one of their own.
    names: HashMap<u32, String>,
    ignored: HashSet<u32>,
    /// The threads that slept when they were found, and in which function of the kernel.
    asleep: HashMap<u32, String>,
}

impl Family {
    /// The family of `pids` as it is now.
    pub fn scan(pids: &[u32], files: &mut Files) -> Family {
        let mut family = Family::default();
        for &pid in pids {
            family.meet(pid, files);
        }
        family
    }

    /// Adds a process as it is now, with its threads; one that is gone by now is left out.
    pub fn meet(&mut self, pid: u32, files: &mut Files) {
        let threads = scan::threads(pid).unwrap_or_default();
        let process = scan::process(pid, files).ok();
        let Some(process) = process.filter(|_| !threads.is_empty()) else {
            return;
        };
        let numbers: Vec<u32> = threads.iter().map(|thread| thread.tid).collect();
        for thread in threads {
            let function = thread.sleeps_in();
            self.asleep.extend(function.map(|name| (thread.tid, name)));
            self.set_name(thread.tid, Some(thread.name), &process.name);
        }
        self.add(pid, process, &numbers);
    }

    /// Removes a process.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
        for tid in self.threads(pid) {
            self.threads.remove(&tid);
            self.names.remove(&tid);
        }
    }

    /// Takes the watched threads that slept when they were found, each with the names of its
    /// process and itself and the function of the kernel.
    pub fn take_asleep(&mut self) -> impl Iterator<Item = (u32, [String; 3])> {
        let asleep = std::mem::take(&mut self.asleep).into_iter();
        asleep.filter_map(|(tid, function)| {
            let process = self.processes.get(self.threads.get(&tid)?)?;
            let thread = self.name(tid).unwrap_or(&process.name);
            Some((tid, [process.name.clone(), thread.to_owned(), function]))
        })
    }

    /// The name of a thread that has one of its own.
    pub fn name(&self, tid: u32) -> Option<&str> {
        self.names.get(&tid).map(String::as_str)
    }

    pub fn add(&mut self, pid: u32, process: Process, threads: &[u32]) {
        self.processes.insert(pid, process);
        self.threads.extend(threads.iter().map(|&tid| (tid, pid)));
    }

    /// Never watches the thread `tid`, whatever its process.
    pub fn ignore(&mut self, tid: u32) {
        self.ignored.insert(tid);
        self.threads.remove(&tid);
    }

    pub fn watched(&self, thread: Thread) -> Option<&Process> {
        self.of(thread.tid).map(|(_, process)| process)
    }

    /// A watched thread's process and its number.
    pub fn of(&self, tid: u32) -> Option<(u32, &Process)> {
        let &pid = self.threads.get(&tid)?;
        Some((pid, self.processes.get(&pid)?))
    }

    /// Gives files new numbers.
    pub fn renumber(&mut self, mut file: impl FnMut(u32) -> u32) {
        let mut known = Renumbered::default();
        for process in self.processes.values_mut() {
            process.image.renumber(&mut known, &mut file);
        }
    }

    /// Returns true if `tid` is to be ignored.
    pub fn ignores(&self, tid: u32) -> bool {
        self.ignored.contains(&tid)
    }

    /// Returns true if the process `pid` is watched.
    pub fn has(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// All watched processes.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// All watched threads.
    pub fn all_threads(&self) -> impl Iterator<Item = u32> {
        self.threads.keys().copied()
    }

    /// The watched threads of the process `pid`.
    pub fn threads(&self, pid: u32) -> Vec<u32> {
        let all = self.threads.iter();
        all.filter_map(|(&tid, &of)| (of == pid).then_some(tid))
            .collect()
    }

    /// Follows births, deaths, names and mappings.
    pub fn follow(&mut self, event: &Event, files: &mut Files) {
        match event {
            Event::Fork { child, parent } => self.born(*child, *parent),
            Event::Exit { thread } => self.died(*thread),
            Event::Comm { thread, name, exec } => self.named(*thread, name, *exec),
            Event::Map { pid, mapping } => {
                if let Some(process) = self.processes.get_mut(pid) {
                    process.image.map(mapping, files);
                }
            }
            _ => {}
        }
    }

    fn born(&mut self, child: Thread, parent: Thread) {
        let Some(process) = self.processes.get(&parent.pid) else {
            // The number may be that of a watched thread that has ended.
            self.threads.remove(&child.tid);
            self.processes.remove(&child.pid);
            return;
        };
        if child.pid != parent.pid {
            let process = process.clone();
            self.processes.insert(child.pid, process);
        }
        if !self.ignored.contains(&child.tid) {
            self.threads.insert(child.tid, child.pid);
            // It is called after the thread that started it.
            if let Some(name) = self.names.get(&parent.tid).cloned() {
                self.names.insert(child.tid, name);
            }
        }
    }

    fn died(&mut self, thread: Thread) {
        self.threads.remove(&thread.tid);
        self.names.remove(&thread.tid);
        let last = !self.threads.values().any(|&pid| pid == thread.pid);
        // An ignored first thread may still start processes.
        if last && (thread.tid == thread.pid || !self.ignored.contains(&thread.pid)) {
            self.processes.remove(&thread.pid);
        }
    }

    fn named(&mut self, thread: Thread, name: &str, exec: bool) {
        let Some(process) = self.processes.get_mut(&thread.pid) else {
            return;
        };
        // A thread may have its own name; the process has that of its first thread.
        if thread.tid == thread.pid {
            name.clone_into(&mut process.name);
        }
        if exec {
            process.image.clear();
        }
        let process = process.name.clone();
        self.set_name(thread.tid, Some(name.to_owned()), &process);
    }

    fn set_name(&mut self, tid: u32, name: Option<String>, process: &str) {
        match name.filter(|name| name != process) {
            Some(name) => self.names.insert(tid, name),
            None => self.names.remove(&tid),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Mapping;

    fn numbered(pid: u32, tid: u32) -> Thread {
        Thread { pid, tid }
    }

    fn family(files: &mut Files) -> Family {
        let mut image = Image::new();
        let mapping = Mapping {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            path: "parent".into(),
        };
        image.map(&mapping, files);
        let mut family = Family::default();
        family.add(
            10,
            Process {
                name: "parent".into(),
                image,
            },
            &[10, 11],
        );
        family
    }

    #[test]
    fn children_and_threads_are_watched_and_strangers_are_not() {
        let mut files = Files::default();
        let mut family = family(&mut files);
        let thread = Event::Fork {
            child: numbered(10, 12),
            parent: numbered(10, 10),
        };
        let child = Event::Fork {
            child: numbered(20, 20),
            parent: numbered(10, 12),
        };
        let stranger = Event::Fork {
            child: numbered(30, 30),
            parent: numbered(5, 5),
        };
        for event in [thread, child, stranger] {
            family.follow(&event, &mut files);
        }
        assert!(family.watched(numbered(10, 12)).is_some());
        let child = family.watched(numbered(20, 20)).expect("watched");
        assert!(
            child.image.find(0x1000).is_some(),
            "a child has its parent's mappings"
        );
        assert!(family.watched(numbered(30, 30)).is_none());
    }

    #[test]
    fn a_program_started_has_its_own_name_and_mappings() {
        let mut files = Files::default();
        let mut family = family(&mut files);
        let mapping = Mapping {
            start: 0x7000,
            end: 0x8000,
            offset: 0,
            path: "true".into(),
        };
        let events = [
            Event::Fork {
                child: numbered(20, 20),
                parent: numbered(10, 10),
            },
            Event::Comm {
                thread: numbered(20, 20),
                name: "true".into(),
                exec: true,
            },
            Event::Map { pid: 20, mapping },
        ];
        for event in events {
            family.follow(&event, &mut files);
        }
        let child = family.watched(numbered(20, 20)).expect("watched");
        assert_eq!(child.name, "true");
        assert!(child.image.find(0x1000).is_none() && child.image.find(0x7000).is_some());
        assert!(
            family
                .watched(numbered(10, 10))
                .is_some_and(|one| one.name == "parent")
        );
    }

    #[test]
    fn the_dead_and_the_ignored_are_not_watched() {
        let mut files = Files::default();
        let mut family = family(&mut files);
        family.ignore(10);
        family.ignore(13);
        let events = [
            Event::Exit {
                thread: numbered(10, 11),
            },
            Event::Fork {
                child: numbered(10, 13),
                parent: numbered(10, 10),
            },
            Event::Fork {
                child: numbered(40, 40),
                parent: numbered(10, 10),
            },
        ];
        for event in events {
            family.follow(&event, &mut files);
        }
        assert_eq!((family.threads(10), family.threads(40)), (vec![], vec![40]));
    }
}
