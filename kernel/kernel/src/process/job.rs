//! Groups of processes, sessions, and stopped processes.
//!
//! A shell gives the processes of a job a group, to which the terminal sends its signals. A session
//! consists of the groups of one terminal. A group or session has the number of its first process.

use super::{FIRST, Info, PROCESSES, Process, Signal, Status, Thread};
use crate::errno::Errno;
use crate::system::system;
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ipc::Kernel;
use linux_raw_sys::general::{CLD_CONTINUED, CLD_STOPPED};

/// A process's group and session, and its stopped state. Each number is independent, and others
/// read it as of some moment: relaxed, except for `stopped`.
pub struct Job {
    group: AtomicU32,
    session: AtomicU32,
    /// True if the process has run a program of its own: then its parent may no longer put it in a
    /// group.
    pub has_executed: AtomicBool,
    /// The signal that has stopped it; 0 while it runs. Its threads sleep at this address.
    /// Sequentially consistent with the keys at which they sleep (`ThreadRef::wake`).
    stopped: AtomicU32,
    /// The event that the parent has not waited for: [`Status::stopped`], [`Status::CONTINUED`], or
    /// 0.
    news: AtomicU32,
}

impl Job {
    /// The state of a running process in a group of a session.
    pub fn new(group: u32, session: u32) -> Self {
        Job {
            group: AtomicU32::new(group),
            session: AtomicU32::new(session),
            has_executed: AtomicBool::new(false),
            stopped: AtomicU32::new(0),
            news: AtomicU32::new(0),
        }
    }

    /// The number of the group.
    pub fn group(&self) -> u32 {
        self.group.load(Ordering::Relaxed)
    }

    /// The number of the session.
    pub fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    /// Returns true if the process is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) != 0
    }

    /// The event that the parent has not waited for, if it is `such`. It is forgotten, unless it
    /// `stays`.
    pub(super) fn news(&self, such: impl Fn(Status) -> bool, stays: bool) -> Option<Status> {
        let news = self.news.load(Ordering::Relaxed);
        let wanted = news != 0 && such(Status(news));
        if wanted && !stays {
            self.news.store(0, Ordering::Relaxed);
        }
        wanted.then_some(Status(news))
    }
}

impl Process {
    /// Stops the process, unless no process could continue it.
    pub(super) fn stop(&self, signal: Signal) {
        if signal != Signal::STOP && is_orphaned(self.job.group(), self.job.session()) {
            return;
        }
        if self.job.stopped.swap(signal.number(), Ordering::SeqCst) == 0 {
            self.tell_parent(Status::stopped(signal), CLD_STOPPED, signal);
            let threads = self.threads.lock();
            threads.iter().for_each(|thread| thread.interrupt());
        }
    }

    /// Continues the process, if it is stopped.
    pub(super) fn go_on(&self) {
        if self.job.stopped.swap(0, Ordering::SeqCst) != 0 {
            system().kernel.wake(self.stop_key(), usize::MAX);
            self.tell_parent(Status::CONTINUED, CLD_CONTINUED, Signal::CONTINUE);
        }
    }

    fn stop_key(&self) -> *const () {
        ptr::from_ref(&self.job.stopped).cast()
    }

    /// Records news that the parent can ask for, and signals the parent.
    fn tell_parent(&self, news: Status, code: u32, signal: Signal) {
        let store = || self.job.news.store(news.0, Ordering::Relaxed);
        let Some(parent) = self.family.parent() else {
            return store();
        };
        parent.family.with_children(|| {
            store();
            if parent.handlers.lock().hears_stops() {
                // This fails only for queued signals.
                let _ = parent.send(Info::child(code, self, signal.number()));
            }
        });
        parent.family.tell();
    }

    /// Makes the process the first of a new session and of a group, without a terminal.
    pub fn begin_session(&self) -> Result<(), Errno> {
        if group(self.pid).next().is_some() {
            return Err(Errno::PERM);
        }
        self.job.group.store(self.pid, Ordering::Relaxed);
        self.job.session.store(self.pid, Ordering::Relaxed);
        Ok(())
    }

    /// Puts the process in a group of its session, perhaps a new one with its own number.
    pub fn join_group(&self, number: u32) -> Result<(), Errno> {
        let job = &self.job;
        let is_known = |other: Arc<Process>| other.job.session() == job.session();
        if job.session() == self.pid || number != self.pid && !group(number).any(is_known) {
            return Err(Errno::PERM);
        }
        job.group.store(number, Ordering::Relaxed);
        Ok(())
    }
}

impl Thread {
    /// Sleeps while the process is stopped.
    pub(super) fn stay_stopped(&self) {
        let job = &self.process.job;
        if job.is_stopped() {
            self.wait_patiently(self.process.stop_key(), || job.is_stopped());
        }
    }
}

/// The processes of a group that have not ended.
pub fn group(number: u32) -> impl Iterator<Item = Arc<Process>> + Clone {
    // Acquire: pairs with the release in `Thread::finish`.
    let is_member = move |it: &Arc<Process>| {
        it.job.group() == number && !it.has_finished.load(Ordering::Acquire)
    };
    PROCESSES.all().filter(is_member)
}

/// Returns true if no process of the group has a parent in another group of the session, such as a
/// shell. The first process, which gets orphans as children, does not count.
pub fn is_orphaned(number: u32, session: u32) -> bool {
    let has_shell = |process: Arc<Process>| {
        let parent = process.family.parent();
        parent.is_some_and(|it| {
            it.pid != FIRST && it.job.session() == session && it.job.group() != number
        })
    };
    !group(number).any(has_shell)
}

/// A process that could have continued the group has ended: if none is left that can, stopped
/// processes of the group are ended, or continue if they handle the signal.
pub(super) fn orphan(number: u32, session: u32) {
    let members = group(number);
    let stopped = members.clone().any(|it| it.job.is_stopped());
    if stopped && is_orphaned(number, session) {
        for member in members {
            member.notify(Signal::HANGUP);
            member.notify(Signal::CONTINUE);
        }
    }
}
