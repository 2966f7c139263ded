//! The recorded processes, from what the kernel reports to events of the recording.

use super::calibration::Costs;
use super::calls;
use super::existing::Existing;
use super::foreign::Foreign;
use super::functions::{Known, waits_for};
use super::memory::Space;
use super::raw::{Happened, Mapped, Raw, Waker};
use super::switches::Switches;
use super::task::{Clock, Fault, Pending, Run, Sleep, Task};
use crate::event::{Event, Stamped, Thread};
use crate::tasks::{self, Found};
use recording::{Birth, FaultKind, Process, Recording, WaitFor, What};
use std::collections::{HashMap, VecDeque};

/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;
/// Nanoseconds in which a thread that has ended may still wake others. Its last switch may not show
/// when that is: the thread has no number any more.
const LAST: u64 = 1_000_000;

/// What is known before anything is recorded.
pub(super) struct Watch {
    pub costs: Costs,
    pub functions: Known,
    /// True if files have no names in the recording.
    pub anonymous: bool,
}

/// The recorded processes as of the last event taken.
pub(super) struct Program {
    pub recording: Recording,
    /// True if files have no names in the recording.
    pub anonymous: bool,
    pub(super) processes: HashMap<u32, Member>,
    pub(super) tasks: HashMap<u32, Task>,
    /// Address spaces; those that nobody has are empty.
    pub(super) spaces: Vec<Space>,
    /// Numbers of files, by device, inode and path.
    pub(super) files: HashMap<((u64, u64), String), u32>,
    pub(super) mappings: u32,
    pub(super) page: u64,
    /// The thread whose children are recorded from their first program on.
    starter: Option<u32>,
    /// Threads born whose kind is not known yet, by the thread that starts them.
    births: HashMap<u32, Thread>,
    /// Threads that have ended, and when.
    ending: VecDeque<(u64, u32)>,
    began: u64,
    costs: Costs,
    functions: Known,
    pub(super) foreign: Foreign,
    /// The kernel's counts of switches that are to be compared: the time, the thread, the count.
    pub(super) counted: VecDeque<(u64, u32, u64)>,
    /// The time of the last event in the recording.
    last: u64,
}

/// A recorded process.
#[derive(Debug)]
pub(super) struct Member {
    /// Its number in the recording.
    pub number: u32,
    pub space: usize,
    /// What happened before this is not of the recording.
    since: u64,
}

impl Program {
    /// Nobody, from the time `began` on. With a `starter`, the processes that this thread starts
    /// are recorded.
    pub fn new(began: u64, watch: Watch, starter: Option<u32>) -> Program {
        let Watch {
            costs,
            functions,
            anonymous,
        } = watch;
        // SAFETY: the call takes no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        Program {
            recording: Recording {
                page: page as u32,
                cost: Some(costs.share),
                ..Recording::default()
            },
            anonymous,
            processes: HashMap::new(),
            tasks: HashMap::new(),
            spaces: Vec::new(),
            files: HashMap::new(),
            mappings: 0,
            page,
            starter,
            births: HashMap::new(),
            ending: VecDeque::new(),
            began,
            costs,
            functions,
            foreign: Foreign::default(),
            counted: VecDeque::new(),
            last: 0,
        }
    }

    /// Returns true if a process was recorded, and none is left.
    pub fn is_over(&self) -> bool {
        !self.recording.threads.is_empty() && self.tasks.values().all(|task| task.ends)
    }

    /// Returns true if the process is recorded.
    pub fn has(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// Adds a process as it is now, with its mappings and threads; one that is gone by now is left
    /// out, as are the kernel's own.
    pub fn meet(&mut self, pid: u32, now: impl Fn() -> u64) {
        let threads = tasks::threads(pid).unwrap_or_default();
        let asleep: Vec<Option<String>> = threads.iter().map(Found::sleeps_in).collect();
        let Some(existing) = Existing::of(pid).filter(|_| !threads.is_empty()) else {
            return;
        };
        let since = now();
        let space = self.new_space(Space::default());
        self.add_process(pid, &name(pid), Birth::Existed, space, since);
        for (thread, function) in threads.iter().zip(asleep) {
            let tid = thread.tid;
            self.add_task(Thread { pid, tid }, &thread.name, since, function.is_none());
            let sleep = function.map(|function| Sleep {
                on: waits_for(&function).unwrap_or(WaitFor::Other),
                since,
                woken: None,
                by: None,
            });
            self.tasks.entry(tid).and_modify(|task| task.sleep = sleep);
        }
        self.give(threads[0].tid, existing, since);
        self.foreign.look_at(pid, now);
    }

    /// Follows one event; events come in the order of time.
    pub fn take(&mut self, Stamped { time, event }: Stamped<Raw>) {
        let Raw { thread, what } = event;
        self.compare_switches(time);
        while let Some((_, tid)) = self.ending.pop_front_if(|(end, _)| *end + LAST <= time) {
            if self.tasks.get(&tid).is_some_and(|task| task.ends) {
                self.gone(time, tid);
            }
        }
        match what {
            Happened::Other(event) => return self.follow(time, event),
            Happened::Birth { flags } => return self.born(time, thread, flags),
            Happened::Locked { space } => return self.locked(time, thread, space),
            Happened::Unlocked { space } => return self.unlocked(time, thread, space),
            Happened::Waking { woken, by } => return self.waking(time, thread.tid, woken, &by),
            _ => {}
        }
        if !self.is_recorded(thread.tid, time) {
            return;
        }
        match what {
            Happened::Enter { call, arguments } => self.enter(time, thread.tid, call, arguments),
            Happened::Return { call, result } => self.leave(time, thread.tid, call, result),
            Happened::Fault {
                address,
                code,
                in_kernel,
            } => self.fault(time, thread.tid, address, code, in_kernel),
            Happened::Resolved => {
                let cost = self.costs.fault;
                let task = self.task(thread.tid);
                task.fault = false;
                task.clock.hold(time, cost);
            }
            Happened::Sleep(chain) => {
                if !self.task(thread.tid).is_inside() {
                    let wait = self.functions.waits.find(&chain);
                    self.task(thread.tid).falls_asleep = wait;
                }
            }
            Happened::Mapped(mapped) => self.mapped(time, thread.tid, mapped),
            Happened::Other(_)
            | Happened::Birth { .. }
            | Happened::Locked { .. }
            | Happened::Unlocked { .. }
            | Happened::Waking { .. } => {}
        }
    }

    /// Ends the recording at `time`.
    pub fn end(&mut self, time: u64) {
        let all: Vec<u32> = self.tasks.keys().copied().collect();
        for tid in all {
            self.flush(tid);
            if self.task(tid).ends {
                self.gone(time, tid);
            }
        }
        self.recording.nanoseconds = time.saturating_sub(self.began);
    }

    /// Adds an event of the thread `tid`. What other threads of its address space have touched
    /// before comes before.
    pub(super) fn put(&mut self, time: u64, tid: u32, what: What) {
        self.flush(tid);
        let space = self.space_of(tid);
        for other in std::mem::take(&mut self.spaces[space].touched) {
            self.flush(other);
        }
        let task = self.task(tid);
        let (thread, computed) = (task.number, std::mem::take(&mut task.clock.computed));
        self.push(time, thread, computed, what);
    }

    pub(super) fn task(&mut self, tid: u32) -> &mut Task {
        self.tasks.get_mut(&tid).expect("a recorded thread")
    }

    pub(super) fn space_of(&mut self, tid: u32) -> usize {
        let pid = self.task(tid).pid;
        self.processes[&pid].space
    }

    pub(super) fn push(&mut self, time: u64, thread: u32, computed: u64, what: What) {
        self.last = time.saturating_sub(self.began).max(self.last);
        self.recording.events.push(recording::Event {
            at: self.last,
            thread,
            computed,
            what,
        });
    }

    /// Ends the run of faults of a thread.
    fn flush(&mut self, tid: u32) {
        let Some(task) = self.tasks.get_mut(&tid) else {
            return;
        };
        let number = task.number;
        if let Some(run) = task.run.take() {
            let Fault {
                at,
                write,
                kind,
                in_kernel,
            } = run.fault;
            let what = What::Fault {
                at,
                pages: run.pages,
                write,
                kind,
                in_kernel,
            };
            self.push(run.last, number, run.computed, what);
        }
    }

    fn is_recorded(&self, tid: u32, time: u64) -> bool {
        let task = self.tasks.get(&tid);
        let process = task.and_then(|task| self.processes.get(&task.pid));
        process.is_some_and(|process| process.since <= time)
    }

    fn enter(&mut self, time: u64, tid: u32, number: i64, arguments: [u64; 6]) {
        let Some(kind) = calls::kind(number) else {
            return;
        };
        self.task(tid).advance(time);
        let pieces = self.affected(tid, kind, arguments);
        let task = self.task(tid);
        task.fault = false;
        task.call = Some(Pending {
            number,
            kind,
            arguments,
            pieces,
            mapped: None,
        });
    }

    fn leave(&mut self, time: u64, tid: u32, number: i64, result: i64) {
        let call = self.task(tid).call.take();
        if let Some(call) = call.filter(|call| call.number == number)
            && let Some(what) = self.done(tid, call, result)
        {
            self.put(time, tid, what);
        }
        let cost = self.costs.call;
        let task = self.task(tid);
        // Nothing since the call began was computing.
        task.fault = false;
        task.clock.hold(time, cost);
    }

    fn fault(&mut self, time: u64, tid: u32, address: u64, code: u64, in_kernel: bool) {
        /// The page was mapped; the access was a write.
        const PROTECTED: u64 = 1;
        const WRITE: u64 = 2;
        if address >= KERNEL {
            return;
        }
        self.task(tid).advance(time);
        let space = self.space_of(tid);
        let page = address - address % self.page;
        let Some(at) = self.spaces[space].regions.find(page) else {
            self.recording.lost.unknown += 1;
            return self.put(time, tid, What::Unknown);
        };
        let kind = match code & PROTECTED {
            0 => FaultKind::Missing,
            _ => FaultKind::Protected,
        };
        let fault = Fault {
            at,
            write: code & WRITE != 0,
            kind,
            in_kernel,
        };
        let page = self.page;
        self.task(tid).fault = true;
        if !self.task(tid).goes_on(fault, time, page) {
            self.flush(tid);
            let task = self.task(tid);
            task.run = Some(Run {
                fault,
                pages: 1,
                computed: std::mem::take(&mut task.clock.computed),
                last: time,
            });
            self.spaces[space].touched.insert(tid);
        }
    }

    /// Follows switches, births, deaths, names and losses.
    fn follow(&mut self, time: u64, event: Event) {
        match event {
            Event::Off { thread, preempted } if self.tasks.contains_key(&thread.tid) => {
                self.off(time, thread.tid, preempted);
            }
            Event::Resume { thread } if self.tasks.contains_key(&thread.tid) => {
                self.resume(time, thread.tid);
            }
            Event::Fork { child, parent } => {
                self.forget(time, child.tid);
                self.births.insert(parent.tid, child);
            }
            Event::Exit { thread } => {
                if let Some(task) = self.tasks.get_mut(&thread.tid) {
                    task.advance(time);
                    task.ends = true;
                    self.ending.push_back((time, thread.tid));
                }
            }
            Event::Comm { thread, name, exec } => self.named(time, thread, &name, exec),
            Event::Lost(count) => self.recording.lost.records += count,
            _ => {}
        }
    }

    fn off(&mut self, time: u64, tid: u32, preempted: bool) {
        let recorded = self.is_recorded(tid, time);
        let task = self.task(tid);
        task.advance(time);
        task.clock.running = false;
        task.switches.seen += 1;
        let on = task.falls_asleep.take();
        if task.ends && !preempted {
            return self.gone(time, tid);
        }
        if !preempted && !task.is_inside() && recorded {
            task.sleep = Some(Sleep {
                on: on.unwrap_or(WaitFor::Other),
                since: time,
                woken: None,
                by: None,
            });
        }
    }

    fn resume(&mut self, time: u64, tid: u32) {
        let task = self.task(tid);
        let sleep = task.sleep.take();
        task.clock.hold(time, 0);
        task.clock.running = true;
        if let Some(sleep) = sleep
            && self.is_recorded(tid, time)
        {
            let woken = sleep.woken.unwrap_or(time);
            let what = What::Wait {
                on: sleep.on,
                nanoseconds: woken.saturating_sub(sleep.since),
                by: sleep.by,
            };
            self.put(time, tid, what);
        }
    }

    /// A thread, or an interrupt on its CPU, wakes another.
    fn waking(&mut self, time: u64, waker: u32, woken: u32, by: &Waker) {
        let Some(sleep) = self
            .tasks
            .get_mut(&woken)
            .and_then(|one| one.sleep.as_mut())
        else {
            return;
        };
        if sleep.woken.is_some() {
            return;
        }
        sleep.woken = Some(time);
        let in_interrupt = match by {
            Waker::Thread => false,
            Waker::Interrupt => true,
            Waker::Soft(chain) => self.functions.interrupts.find(chain).is_some(),
        };
        if in_interrupt || waker == woken || !self.is_recorded(waker, time) {
            return;
        }
        let thread = self.tasks[&woken].number;
        let task = self.task(waker);
        task.advance(time);
        let by = (task.number, task.wakes);
        task.wakes += 1;
        self.put(time, waker, What::Wake { thread });
        if let Some(sleep) = &mut self.task(woken).sleep {
            sleep.by = Some(by);
        }
    }

    /// The thread `parent` has started another one, with these flags of `clone`.
    fn born(&mut self, time: u64, parent: Thread, flags: u64) {
        let Some(child) = self.births.remove(&parent.tid) else {
            return;
        };
        if Some(parent.tid) == self.starter && child.pid != parent.pid {
            let space = self.new_space(Space::default());
            self.add_process(child.pid, "", Birth::Existed, space, u64::MAX);
            return self.add_child(child, "", time);
        }
        if !self.tasks.contains_key(&parent.tid) || self.tasks.contains_key(&child.tid) {
            return;
        }
        if !self.is_recorded(parent.tid, time) {
            // Since then its process has been looked at, and the child with it, or not yet.
            if child.pid != parent.pid {
                self.meet(child.pid, crate::session::now);
            }
            return;
        }
        let number = self.task(parent.tid).number as usize;
        let name = self.recording.threads[number].name.clone();
        let borrows = flags & libc::CLONE_VM as u64 != 0;
        let thread = self.recording.threads.len() as u32;
        if child.pid == parent.pid {
            self.add_child(child, &name, time);
            return self.put(time, parent.tid, What::Start { thread });
        }
        // What was touched before is copied.
        self.put(time, parent.tid, What::Fork { thread, borrows });
        let space = self.space_of(parent.tid);
        let space = match borrows {
            true => space,
            false => self.new_space(self.spaces[space].copy()),
        };
        self.spaces[space].users += usize::from(borrows);
        self.add_process(child.pid, &name, Birth::Forked, space, time);
        self.add_child(child, &name, time);
    }

    /// A thread has a new name, or its process executes a program.
    fn named(&mut self, time: u64, thread: Thread, name: &str, exec: bool) {
        let Some(task) = self.tasks.get(&thread.tid) else {
            return;
        };
        let number = task.number as usize;
        name.clone_into(&mut self.recording.threads[number].name);
        let process = self.processes[&thread.pid].number as usize;
        if thread.tid == thread.pid {
            name.clone_into(&mut self.recording.processes[process].name);
        }
        if exec {
            self.executes(time, thread);
        }
    }

    fn executes(&mut self, time: u64, thread: Thread) {
        let others: Vec<u32> = self
            .tasks
            .iter()
            .filter_map(|(&tid, task)| (task.pid == thread.pid && tid != thread.tid).then_some(tid))
            .collect();
        for tid in others {
            self.gone(time, tid);
        }
        if self.is_recorded(thread.tid, time) {
            self.put(time, thread.tid, What::Exec);
        }
        let space = self.new_space(Space::default());
        let process = self
            .processes
            .get_mut(&thread.pid)
            .expect("its thread is recorded");
        let old = std::mem::replace(&mut process.space, space);
        process.since = process.since.min(time);
        self.leave_space(old);
        let task = self.task(thread.tid);
        task.ends = false;
        task.switches = Switches::default();
        task.clock = Clock::new(time, true);
        task.call = Some(Pending::of(libc::SYS_execve));
    }

    /// The kernel has mapped memory for a call or a new program.
    fn mapped(&mut self, time: u64, tid: u32, mapped: Mapped) {
        match &mut self.task(tid).call {
            Some(call) if calls::executes(call.number) => {
                let existing = Existing {
                    mappings: vec![mapped],
                    heap: None,
                };
                self.give(tid, existing, time);
            }
            Some(call) => call.mapped = Some(mapped),
            // A stack grows, or a call that is not traced maps.
            None => {}
        }
    }

    /// Removes a thread, and its process with the last one.
    fn gone(&mut self, time: u64, tid: u32) {
        if self.is_recorded(tid, time) {
            self.put(time, tid, What::Exit);
        }
        self.drop_task(tid);
    }

    /// Removes what is left of a thread whose number another has got.
    fn forget(&mut self, time: u64, tid: u32) {
        let old = self.tasks.get(&tid);
        let process = old.and_then(|task| self.processes.get(&task.pid));
        // A thread that was found in /proc may have been born after that.
        if process.is_some_and(|process| process.since <= time) {
            self.gone(time, tid);
        }
    }

    fn drop_task(&mut self, tid: u32) {
        let Some(task) = self.tasks.remove(&tid) else {
            return;
        };
        if self.tasks.values().any(|other| other.pid == task.pid) {
            return;
        }
        if let Some(process) = self.processes.remove(&task.pid) {
            self.leave_space(process.space);
        }
    }

    fn new_space(&mut self, mut space: Space) -> usize {
        let free = self.spaces.iter().position(|space| space.users == 0);
        let at = free.unwrap_or(self.spaces.len());
        space.users = 1;
        match free {
            Some(at) => self.spaces[at] = space,
            None => self.spaces.push(space),
        }
        at
    }

    fn leave_space(&mut self, space: usize) {
        let space = &mut self.spaces[space];
        space.users -= 1;
        if space.users == 0 {
            *space = Space::default();
        }
    }

    fn add_process(&mut self, pid: u32, name: &str, birth: Birth, space: usize, since: u64) {
        let number = self.recording.processes.len() as u32;
        self.recording.processes.push(Process {
            pid,
            name: name.to_owned(),
            birth,
        });
        let member = Member {
            number,
            space,
            since,
        };
        self.processes.insert(pid, member);
    }

    /// Adds a thread that has just been born: it returns from the call that made it.
    fn add_child(&mut self, thread: Thread, name: &str, time: u64) {
        self.add_task(thread, name, time, false);
        let task = self.task(thread.tid);
        task.call = Some(Pending::of(libc::SYS_clone));
        task.switches = Switches::NONE;
    }

    fn add_task(&mut self, thread: Thread, name: &str, time: u64, running: bool) {
        let number = self.recording.threads.len() as u32;
        self.recording.threads.push(recording::Thread {
            tid: thread.tid,
            process: self.processes[&thread.pid].number,
            name: name.to_owned(),
        });
        let task = Task::new(number, thread.pid, Clock::new(time, running));
        self.tasks.insert(thread.tid, task);
    }
}

fn name(number: u32) -> String {
    tasks::name(number).unwrap_or_default()
}
