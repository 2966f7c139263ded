//! Processes: a space, descriptors, threads, and a place in the family.

mod affinity;
mod alarm;
mod caller;
mod exec;
mod family;
mod fork;
mod handle;
mod job;
pub mod limits;
mod memory;
pub mod ready;
mod robust;
mod script;
mod shortage;
mod signals;
mod stacks;
mod table;
mod thread;
mod usage;
mod user;
mod words;

pub use alarm::Measure;
pub use caller::CurrentTask;
pub use exec::{execute, first};
pub use family::{News, Status, Wanted, Which};
pub use fork::Shares;
pub use handle::Handle;
pub use job::{group, is_orphaned};
pub use limits::{Limit, Limits};
pub use ready::READY;
pub use shortage::relieve;
pub use signals::{Action, Handlers, Info, Pending, Set, Signal, SignalStack};
pub use stacks::{NewTask, frame as stack_frame, reserve};
pub use table::{PROCESSES, Table};
pub use thread::{Interrupted, NAME, Thread, ThreadRef, wait_until, with_current};
pub use usage::Used;
pub use user::Plain;

use crate::fs::{Descriptors, Executable, Inode, Path};
use crate::program::Start;
use crate::single::Single;
use crate::system::{Lock, Space};
use crate::users::Users;
use alarm::Alarms;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use family::Family;
use job::Job;

/// A process.
pub struct Process {
    /// The process's number.
    pub pid: u32,
    /// Its memory, until it ends. Its threads have references of their own.
    space: Lock<Option<Arc<Space>>>,
    /// True if its parent waits until it no longer uses the parent's memory.
    borrows: AtomicBool,
    /// Its open files.
    pub files: Lock<Descriptors>,
    /// Who it is.
    pub users: Lock<Users>,
    /// True if others of its user may look at it (`PR_SET_DUMPABLE`).
    pub is_dumpable: AtomicBool,
    /// True if no program that it starts gets its owner's rights (`PR_SET_NO_NEW_PRIVS`).
    pub is_confined: AtomicBool,
    /// Its limits.
    pub limits: Lock<Limits>,
    /// Its current directory.
    pub directory: Lock<Arc<Inode>>,
    /// Its program, until it ends.
    pub program: Lock<Arc<Executable>>,
    /// The path, arguments and environment with which its program has started.
    pub start: Lock<Arc<Start>>,
    /// The signal that it gets when its parent ends; 0 for none.
    pub death_signal: AtomicU32,
    /// True if it becomes the parent of its descendants' orphans (`PR_SET_CHILD_SUBREAPER`).
    pub is_reaper: AtomicBool,
    /// The permissions that new files do not get (`umask`).
    pub umask: AtomicU32,
    /// Its parent and children.
    pub family: Family,
    /// Its group and session, and its stopped state.
    pub job: Job,
    /// True if it has registered for barriers (`membarrier`).
    pub has_barriers: AtomicBool,
    /// Its actions at signals.
    pub handlers: Lock<Handlers>,
    /// Signals that any thread may take.
    pub pending: Pending,
    /// The changes of semaphores that its end takes back. Locked under a set's lock.
    pub undo: Lock<Undo>,
    /// Its alarms.
    alarms: Lock<Alarms>,
    /// Its threads.
    pub threads: Lock<Vec<Arc<ThreadRef>>>,
    /// The resources used by its threads that have ended.
    used_by_ended: Lock<Used>,
    /// True if its last thread has ended, and only the status is left.
    pub has_finished: AtomicBool,
    /// [`RUNS`], or the status with which it ends, for `wait4`. Changes once.
    ending: AtomicU32,
}

/// The changes that a process's end makes: what is added to each semaphore of a set.
pub type Undo = BTreeMap<(i32, usize), i32>;

/// Functions of modules above this one that processes call.
pub struct Hooks {
    /// Called when a process has freed memory.
    pub memory_given_up: fn(),
    /// Called when a process is ending: it has no threads and no memory any more, but still its
    /// files.
    pub ending: fn(&Process),
    /// Called when a process has ended.
    pub ended: fn(&Process),
}

/// The system's hooks.
pub static HOOKS: Single<Hooks> = Single::new();

/// The number of the first process, which runs `/init`.
const FIRST: u32 = 1;
/// The value while a process has not ended.
const RUNS: u32 = u32::MAX;

impl Process {
    /// A path, relative to the process's directory.
    pub fn path<'a>(&self, names: &'a [u8]) -> Path<'a> {
        Path {
            from: self.directory.lock().clone(),
            names,
        }
    }

    /// The status with which the process ends, if it does.
    pub fn ending(&self) -> Option<Status> {
        let ending = self.ending.load(Ordering::Acquire);
        (ending != RUNS).then_some(Status(ending))
    }

    /// Ends the process: each thread ends when it is about to return to user mode.
    pub fn end(&self, status: Status) {
        // The first status counts.
        let _ = self
            .ending
            .compare_exchange(RUNS, status.0, Ordering::AcqRel, Ordering::Relaxed);
        self.threads
            .lock()
            .iter()
            .for_each(|thread| thread.interrupt());
    }
}
