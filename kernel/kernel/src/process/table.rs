//! All processes, by number.

use super::Process;
use crate::single::Single;
use crate::system::Lock;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::iter;
use core::sync::atomic::{AtomicU32, Ordering};

/// The system's processes.
pub static PROCESSES: Single<Table> = Single::new();

/// Processes, by number.
pub struct Table {
    processes: Lock<BTreeMap<u32, Weak<Process>>>,
    next: AtomicU32,
}

impl Table {
    /// No processes.
    pub fn new() -> Self {
        Table {
            processes: Lock::new(BTreeMap::new()),
            next: AtomicU32::new(1),
        }
    }

    /// A new number for a process or a thread. Numbers are not reused.
    pub fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of numbers given so far.
    pub fn given(&self) -> u32 {
        self.next.load(Ordering::Relaxed) - 1
    }

    /// Adds a process.
    pub fn add(&self, process: &Arc<Process>) {
        let weak = Arc::downgrade(process);
        self.processes.lock().insert(process.pid, weak);
    }

    /// Removes a process.
    pub fn remove(&self, pid: u32) {
        self.processes.lock().remove(&pid);
    }

    /// The process with this number.
    pub fn get(&self, pid: u32) -> Option<Arc<Process>> {
        self.processes.lock().get(&pid)?.upgrade()
    }

    /// The lowest number of a process from `least` on.
    pub fn from(&self, least: u32) -> Option<u32> {
        let processes = self.processes.lock();
        processes.range(least..).next().map(|(&pid, _)| pid)
    }

    /// The processes, in the order of their numbers. Each is looked up when the iterator reaches
    /// it. Processes that begin meanwhile have higher numbers than all given before, and are left
    /// out.
    pub fn all(&self) -> impl Iterator<Item = Arc<Process>> + Clone {
        let last = self.given();
        let next = move |least: u32| self.from(least).filter(|&pid| pid <= last);
        iter::successors(next(0), move |&pid| next(pid + 1)).filter_map(|pid| self.get(pid))
    }

    /// The number of processes.
    pub fn count(&self) -> usize {
        self.processes.lock().len()
    }
}
