//! New processes.

use super::family::Family;
use super::job::Job;
use super::{Handlers, Limits, PROCESSES, Pending, Process, RUNS, Thread};
use crate::errno::Errno;
use crate::fs::{Descriptors, Executable, Inode};
use crate::program::Start;
use crate::system::{Lock, Space};
use crate::users::Users;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A child's inheritance from its parent, except memory.
pub(super) struct Inherited {
    pub files: Descriptors,
    pub directory: Arc<Inode>,
    pub program: Arc<Executable>,
    pub start: Arc<Start>,
    pub handlers: Handlers,
    pub limits: Limits,
    pub umask: u32,
    pub users: Users,
    pub is_dumpable: bool,
    pub is_confined: bool,
    /// The group and the session; `None` for new ones.
    pub job: Option<(u32, u32)>,
}

/// What a child shares with its parent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    /// True if the child shares its parent's memory; otherwise it gets a copy.
    pub memory: bool,
    /// True if the parent waits until the child does not use its memory any more.
    pub is_lent: bool,
    /// True if the child gets the caller's parent as its parent.
    pub parent: bool,
    /// The signal to the parent when the child ends; 0 for none.
    pub exit_signal: u32,
}

impl Process {
    /// A process without threads, which is not in the table yet.
    pub(super) fn new(space: Arc<Space>, family: Family, inherited: Inherited) -> Arc<Self> {
        let Inherited {
            files,
            directory,
            program,
            start,
            handlers,
            limits,
            umask,
            users,
            is_dumpable,
            is_confined,
            job,
        } = inherited;
        let pid = PROCESSES.number();
        let (group, session) = job.unwrap_or((pid, pid));
        Arc::new(Process {
            pid,
            space: Lock::new(Some(space)),
            borrows: AtomicBool::new(false),
            files: Lock::new(files),
            directory: Lock::new(directory),
            program: Lock::new(program),
            start: Lock::new(start),
            death_signal: AtomicU32::new(0),
            is_reaper: AtomicBool::new(false),
            umask: AtomicU32::new(umask),
            users: Lock::new(users),
            is_dumpable: AtomicBool::new(is_dumpable),
            is_confined: AtomicBool::new(is_confined),
            family,
            job: Job::new(group, session),
            has_barriers: AtomicBool::new(false),
            handlers: Lock::new(handlers),
            limits: Lock::new(limits),
            pending: Pending::new(),
            undo: Lock::default(),
            alarms: Lock::default(),
            threads: Lock::new(Vec::new()),
            used_by_ended: Lock::default(),
            has_finished: AtomicBool::new(false),
            ending: AtomicU32::new(RUNS),
        })
    }
}

impl Thread {
    /// Makes a new process, whose only thread continues where this one is, with the result 0. It
    /// does not run yet.
    pub fn fork(&self, shares: Shares) -> Result<Thread, Errno> {
        let process = &self.process;
        let job = &process.job;
        let inherited = Inherited {
            files: process.files.lock().clone(),
            directory: process.directory.lock().clone(),
            program: process.program.lock().clone(),
            start: process.start.lock().clone(),
            handlers: process.handlers.lock().clone(),
            limits: process.limits.lock().clone(),
            umask: process.umask.load(Ordering::Relaxed),
            users: process.users.lock().clone(),
            is_dumpable: process.is_dumpable.load(Ordering::Relaxed),
            is_confined: process.is_confined.load(Ordering::Relaxed),
            job: Some((job.group(), job.session())),
        };
        let space = if shares.memory {
            self.space.clone()
        } else {
            Arc::new(self.space.fork()?)
        };
        let (parent, exit_signal) = match shares.parent {
            // A sibling has the exit signal of the caller.
            true => {
                let parent = process.family.parent().ok_or(Errno::INVAL)?;
                (parent, process.family.exit_signal())
            }
            false => (process.clone(), shares.exit_signal),
        };
        let family = Family::new(Arc::downgrade(&parent), exit_signal);
        let child = Process::new(space.clone(), family, inherited);
        child.borrows.store(shares.is_lent, Ordering::SeqCst);
        let mut frame = self.frame.clone();
        frame.rax = 0;
        let pid = child.pid;
        let mut thread = Thread::new(child.clone(), space, pid, frame)?;
        if !parent.adopt(&child) {
            // The child ends. Its threads and the process refer to each other, so this breaks the
            // cycle.
            thread.process.threads.lock().clear();
            return Err(Errno::AGAIN);
        }
        PROCESSES.add(&child);
        thread.set_mask(self.mask());
        thread.thread_pointer = self.thread_pointer;
        if !shares.memory || shares.is_lent {
            thread.signal_stack = self.signal_stack;
        }
        *thread.shared.name.lock() = *self.shared.name.lock();
        *thread.shared.affinity.lock() = *self.shared.affinity.lock();
        Ok(thread)
    }
}
