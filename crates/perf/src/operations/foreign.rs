//! Threads that are no part of the program and lock its address space: monitors that read `/proc`,
//! scanners of the kernel.

use super::program::Program;
use crate::event::Thread;
use crate::session::own_thread;
use crate::tasks;
use recording::{Birth, Process, What};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// What is known of them, and of address spaces.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// The recorded process of an address space, by the kernel's address of it.
    owners: HashMap<u64, u32>,
    /// Looks of this program's threads at processes: when, and at which.
    looks: Vec<(Range<u64>, Thread, u32)>,
    /// The number in the recording of a foreign thread.
    threads: HashMap<u32, u32>,
    /// Since when a foreign thread has held the lock of an address space.
    held: HashMap<(u32, u64), u64>,
}

impl Foreign {
    /// Looks at a process, which locks its address space: the event tells where that is.
    pub fn look_at(&mut self, pid: u32, now: impl Fn() -> u64) {
        // The kernel reads it from the process's memory.
        let Ok(mut file) = File::open(format!("/proc/{pid}/cmdline")) else {
            return;
        };
        let begun = now();
        let read = file.read(&mut [0; 16]);
        let thread = Thread {
            pid: std::process::id(),
            tid: own_thread(),
        };
        if read.is_ok() {
            self.looks.push((begun..now(), thread, pid));
        }
    }

    /// The process at which a thread that locks an address space looks: the first lock is its.
    fn looked_at(&mut self, time: u64, thread: Thread) -> Option<u32> {
        let is_look =
            |(span, by, _): &(Range<u64>, Thread, u32)| span.contains(&time) && *by == thread;
        let found = self.looks.iter().position(is_look)?;
        Some(self.looks.swap_remove(found).2)
    }
}

impl Program {
    /// A thread has locked the address space `space` for reading.
    pub(super) fn locked(&mut self, time: u64, thread: Thread, space: u64) {
        let own = self.tasks.get(&thread.tid).filter(|task| task.is_inside());
        if let Some(task) = own {
            // Its faults and calls work on its own memory.
            self.foreign.owners.insert(space, task.pid);
        } else if let Some(pid) = self.foreign.looked_at(time, thread) {
            self.foreign.owners.insert(space, pid);
        } else if self.owner(thread, space).is_some() {
            self.foreign.held.insert((thread.tid, space), time);
        }
    }

    /// A thread has unlocked the address space `space`.
    pub(super) fn unlocked(&mut self, time: u64, thread: Thread, space: u64) {
        let since = self.foreign.held.remove(&(thread.tid, space));
        let (Some(since), Some(process)) = (since, self.owner(thread, space)) else {
            return;
        };
        let number = self.foreign_thread(thread);
        let nanoseconds = time.saturating_sub(since);
        let write = false;
        let what = What::Hold {
            process,
            write,
            nanoseconds,
        };
        self.push(time, number, 0, what);
    }

    /// The number of the recorded process that has the address space, if the thread is of none.
    fn owner(&self, thread: Thread, space: u64) -> Option<u32> {
        let is_foreign = !self.has(thread.pid) && thread.pid != std::process::id();
        let pid = self.foreign.owners.get(&space).filter(|_| is_foreign)?;
        self.processes.get(pid).map(|process| process.number)
    }

    fn foreign_thread(&mut self, Thread { pid, tid }: Thread) -> u32 {
        if let Some(&number) = self.foreign.threads.get(&tid) {
            return number;
        }
        // One that is gone by now has no name.
        let name = |number| tasks::name(number).unwrap_or_default();
        let birth = Birth::Foreign;
        let process = self.recording.processes.len() as u32;
        self.recording.processes.push(Process {
            pid,
            name: name(pid),
            birth,
        });
        let number = self.recording.threads.len() as u32;
        self.recording.threads.push(recording::Thread {
            tid,
            process,
            name: name(tid),
        });
        self.foreign.threads.insert(tid, number);
        number
    }
}
