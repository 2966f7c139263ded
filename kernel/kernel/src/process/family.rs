//! Parents and children: a process that has ended remains until its parent has waited for it.

use super::{FIRST, Info, PROCESSES, Process, Signal, Used, job};
use crate::errno::Errno;
use crate::fs::ARRIVALS;
use crate::system::{Lock, system};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::{iter, ptr};
use ipc::Kernel;
use linux_raw_sys::general::{CLD_CONTINUED, CLD_EXITED, CLD_KILLED, CLD_STOPPED};

/// A status of `wait4`: how a process has ended, or that it was stopped or continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// The process was continued.
    pub const CONTINUED: Status = Status(0xffff);
    /// The lower byte of a stopped process's status.
    const STOPPED: u32 = 0x7f;

    /// The process has ended by itself, with a code.
    pub fn exited(code: usize) -> Self {
        Status((code as u32 & 0xff) << 8)
    }

    /// A signal has ended the process.
    pub fn killed(signal: Signal) -> Self {
        Status(signal.number())
    }

    /// A signal has stopped the process.
    pub fn stopped(signal: Signal) -> Self {
        Status(Self::STOPPED | signal.number() << 8)
    }

    /// The exit code of a shell: the code, or 128 plus the signal's number.
    pub fn code(self) -> u32 {
        match self.parts() {
            (CLD_EXITED, code) => code,
            (_, signal) => 128 + signal,
        }
    }

    /// `CLD_…` and the code or the signal, for `siginfo`.
    pub fn parts(self) -> (u32, u32) {
        match self.0 & 0x7f {
            _ if self == Self::CONTINUED => (CLD_CONTINUED, Signal::CONTINUE.number()),
            0 => (CLD_EXITED, self.0 >> 8),
            Self::STOPPED => (CLD_STOPPED, self.0 >> 8),
            signal => (CLD_KILLED, signal),
        }
    }
}

/// A process's parent and children.
pub struct Family {
    /// The parent. Locked before the parent's `children`; while locked, the process is among these,
    /// or has been waited for.
    parent: Lock<Weak<Process>>,
    /// The parent's number; 0 without one. Written with `parent`, read alone: relaxed.
    parent_number: AtomicU32,
    /// The children, by number. The nodes are small allocations, so the first process has memory
    /// for any number of orphans.
    children: Lock<BTreeMap<u32, Arc<Process>>>,
    /// The resources used by children that have been waited for, with those of their own such
    /// children.
    pub used: Lock<Used>,
    /// The signal to the parent when the process ends; 0 for none.
    exit_signal: AtomicU32,
    /// True if the process has ended, and its parent can wait for it. Set under the lock of
    /// `parent`.
    has_ended: AtomicBool,
    /// The number of events of children, wrapping. The parent sleeps at its address.
    changes: AtomicU32,
}

/// An event of a child.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// The child's number.
    pub pid: u32,
    /// The event.
    pub status: Status,
    /// The resources that it and its own children have used.
    pub used: Used,
}

/// The children for which a parent waits.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// All children.
    Any,
    /// The child with this number.
    One(u32),
    /// The children in a group.
    Group(u32),
}

/// The awaited events.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The children whose events are awaited.
    pub which: Which,
    /// True for only the children that report their end by `SIGCHLD`, false for only the others,
    /// `None` for both.
    pub only: Option<bool>,
    /// True if ends of children count.
    pub ends: bool,
    /// True if stops of children count.
    pub stops: bool,
    /// True if continuations of children count.
    pub continuations: bool,
    /// True if the reported event remains for another wait.
    pub stays: bool,
    /// True if the caller waits until there is an event.
    pub waits: bool,
}

impl Family {
    /// The place of a new child of `parent`, which gets a signal at its end.
    pub fn new(parent: Weak<Process>, exit_signal: u32) -> Self {
        let number = parent.upgrade().map_or(0, |parent| parent.pid);
        Family {
            parent: Lock::new(parent),
            parent_number: AtomicU32::new(number),
            children: Lock::new(BTreeMap::new()),
            used: Lock::default(),
            exit_signal: AtomicU32::new(exit_signal),
            has_ended: AtomicBool::new(false),
            changes: AtomicU32::new(0),
        }
    }

    /// The signal to the parent when the process ends; 0 for none.
    pub fn exit_signal(&self) -> u32 {
        self.exit_signal.load(Ordering::Relaxed)
    }

    /// Returns true if its parent can wait for the process, which has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// The parent.
    pub fn parent(&self) -> Option<Arc<Process>> {
        self.parent.lock().upgrade()
    }

    /// The parent's number; 0 without one.
    pub fn parent_number(&self) -> u32 {
        self.parent_number.load(Ordering::Relaxed)
    }

    /// One of the children.
    fn some_child(&self) -> Option<Arc<Process>> {
        self.children.lock().values().next_back().cloned()
    }

    /// The child with a number.
    pub fn child(&self, pid: u32) -> Option<Arc<Process>> {
        self.children.lock().get(&pid).cloned()
    }

    /// Reports an event of a child, once; waits for one if `wanted` says so. `is_disturbed` ends
    /// the wait.
    pub fn ask(
        &self,
        wanted: &Wanted,
        is_disturbed: impl Fn() -> bool,
    ) -> Result<Option<News>, Errno> {
        loop {
            // Acquire: pairs with the release in `tell`.
            let seen = self.changes.load(Ordering::Acquire);
            let found = self.find(wanted)?;
            if found.is_some() || !wanted.waits {
                return Ok(found);
            }
            if is_disturbed() {
                return Err(Errno::INTR);
            }
            let unchanged = || self.changes.load(Ordering::Acquire) == seen;
            system().kernel.sleep(self.key(), unchanged);
        }
    }

    /// Looks for an event; `Errno::CHILD` if there is no such child.
    fn find(&self, wanted: &Wanted) -> Result<Option<News>, Errno> {
        let mut children = self.children.lock();
        let meant = |child: &Arc<Process>| wanted.means(child);
        if !children.values().any(meant) {
            return Err(Errno::CHILD);
        }
        // Acquire: pairs with the release in `report_end`.
        let has_ended = |child: &Arc<Process>| {
            wanted.ends && meant(child) && child.family.has_ended.load(Ordering::Acquire)
        };
        if let Some(child) = children.values().find(|child| has_ended(child)).cloned() {
            if wanted.stays {
                return Ok(child.end_news());
            }
            children.remove(&child.pid);
            drop(children);
            PROCESSES.remove(child.pid);
            let news = child.end_news();
            let mut all = self.used.lock();
            *all = *all + news.map(|news| news.used).unwrap_or_default();
            return Ok(news);
        }
        let counts = |status: Status| match status {
            Status::CONTINUED => wanted.continuations,
            _ => wanted.stops,
        };
        let mut living = children.values().filter(|child| meant(child));
        Ok(living.find_map(|child| {
            let status = child.job.news(counts, wanted.stays)?;
            let (pid, used) = (child.pid, child.used());
            Some(News { pid, status, used })
        }))
    }

    /// The key at which the process sleeps when it waits for children.
    fn key(&self) -> *const () {
        ptr::from_ref(&self.changes).cast()
    }

    /// Counts an event of a child, and makes a parent that waits look again.
    pub(super) fn tell(&self) {
        // Release: pairs with the acquire in `ask`.
        self.changes.fetch_add(1, Ordering::Release);
        system().kernel.wake(self.key(), usize::MAX);
    }

    /// Calls `f` while no wait looks for events, so that a parent that has learned of an event
    /// already has the signal, and does not get it later, when it may wait for another.
    pub(super) fn with_children<R>(&self, f: impl FnOnce() -> R) -> R {
        let _children = self.children.lock();
        f()
    }
}

impl Wanted {
    fn means(&self, child: &Process) -> bool {
        let is_usual = child.family.exit_signal() == Signal::CHILD.number();
        self.only.is_none_or(|usual| usual == is_usual)
            && match self.which {
                Which::Any => true,
                Which::One(pid) => child.pid == pid,
                Which::Group(group) => child.job.group() == group,
            }
    }
}

impl Process {
    fn end_news(&self) -> Option<News> {
        let used = self.used() + *self.family.used.lock();
        let pid = self.pid;
        self.ending().map(|status| News { pid, status, used })
    }

    /// Gives the children of the process, which has ended, another parent, and tells its own
    /// parent.
    pub(super) fn leave_family(&self) {
        self.leave_children();
        let (group, session) = (self.job.group(), self.job.session());
        let parent = self.report_end();
        ARRIVALS.tell();
        let Some(parent) = parent else {
            return;
        };
        if parent.job.group() != group && parent.job.session() == session {
            job::orphan(group, session);
        }
        parent.family.tell();
    }

    fn leave_children(&self) {
        let (group, session) = (self.job.group(), self.job.session());
        while let Some(orphan) = self.family.some_child() {
            let Some(heir) = orphan.move_from(self) else {
                continue;
            };
            let signal = orphan.death_signal.load(Ordering::Relaxed);
            if let Ok(signal) = Signal::new(signal as usize) {
                orphan.notify(signal);
            }
            let (theirs, in_session) = (orphan.job.group(), orphan.job.session());
            // This process was no shell for a group in another session.
            if theirs != group && in_session == session {
                job::orphan(theirs, session);
            }
            // The child may have ended meanwhile, and told this process.
            heir.family.tell();
        }
    }

    /// Moves the process from `parent` to the first heir of that; returns the heir, or `None` if
    /// the process was no child of `parent`.
    fn move_from(self: &Arc<Self>, parent: &Process) -> Option<Arc<Process>> {
        let mut place = self.family.parent.lock();
        let mut children = parent.family.children.lock();
        children.remove(&self.pid)?;
        drop(children);
        let heir = parent.heirs().find(|heir| heir.adopt(self))?;
        *place = Arc::downgrade(&heir);
        let number = &self.family.parent_number;
        number.store(heir.pid, Ordering::Relaxed);
        Some(heir)
    }

    /// The processes that may become the parents of this one's children: the ancestors that have
    /// asked for orphans, the nearest first, then the first process.
    fn heirs(&self) -> impl Iterator<Item = Arc<Process>> {
        let above = |process: &Arc<Process>| process.family.parent();
        let ancestors = iter::successors(self.family.parent(), above);
        let reapers = ancestors.filter(|it| it.is_reaper.load(Ordering::Relaxed));
        reapers.chain(iter::once_with(|| PROCESSES.get(FIRST)).flatten())
    }

    /// Makes `child` a child of this process, unless this one ends. Returns true if it did.
    pub(super) fn adopt(&self, child: &Arc<Process>) -> bool {
        let mut children = self.family.children.lock();
        // Read under the lock: a process first ends, then looks for children to leave.
        let adopts = self.ending().is_none() || self.pid == FIRST;
        if adopts {
            children.insert(child.pid, child.clone());
        }
        adopts
    }

    /// Lets the parent wait for the process, which has ended, and signals it. If the parent ignores
    /// the ends of children, it loses the child at once, and no wait sees that it has ended.
    /// Returns the parent.
    fn report_end(&self) -> Option<Arc<Process>> {
        let place = self.family.parent.lock();
        let parent = place.upgrade()?;
        // Held over both steps: a parent that has learned of the end already has the signal, and
        // does not get it later, when it may wait for another child; and one that handles the
        // signal learns of the end.
        let mut children = parent.family.children.lock();
        let is_usual = self.family.exit_signal() == Signal::CHILD.number();
        if is_usual && parent.handlers.lock().ignores_ends() {
            children.remove(&self.pid);
            PROCESSES.remove(self.pid);
        } else {
            // Release: pairs with the acquire in `Family::find`.
            self.family.has_ended.store(true, Ordering::Release);
        }
        self.signal_end(&parent);
        drop(children);
        Some(parent)
    }

    /// Sends the signal for the process's end.
    fn signal_end(&self, parent: &Process) {
        let Ok(signal) = Signal::new(self.family.exit_signal() as usize) else {
            return;
        };
        let (code, status) = self.ending().unwrap_or(Status::exited(0)).parts();
        let info = Info::child(code, self, status);
        // This fails only for queued signals.
        let _ = parent.send(Info { signal, ..info });
    }

    /// Sets the usual signal for the process's end, when it runs a new program.
    pub(super) fn end_as_usual(&self) {
        let usual = Signal::CHILD.number();
        self.family.exit_signal.store(usual, Ordering::Relaxed);
    }
}
