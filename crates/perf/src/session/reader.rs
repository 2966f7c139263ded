//! The thread that empties the rings.

use super::Opened;
use super::budget::Budget;
use super::opened::own_thread;
use super::order::Order;
use super::pace::Pace;
use crate::account::{Account, Cut};
use crate::event::{Event, Stamped};
use crate::tasks::Cgroup;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// Milliseconds between rounds, unless a ring fills up earlier.
const ROUND: i32 = 50;
/// Nanoseconds after which a record is certain to be written: the kernel takes its time first and
/// writes it later, and each CPU has its own ring. Older events are complete and can be ordered.
pub(crate) const SETTLED: u64 = 20_000_000;
/// Nanoseconds between looks at who has joined a group.
const LOOKS: u64 = 100_000_000;

/// What the reader and the thread that started it tell each other.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// True if an interval is to end.
    pub cut: AtomicBool,
    /// True if the recording is to end.
    pub stop: AtomicBool,
    /// True if no watched thread is alive.
    pub over: AtomicBool,
}

/// Reads until it is told to stop.
pub(crate) struct Reader {
    opened: Opened,
    account: Account,
    signals: Arc<Signals>,
    /// Where ended intervals go, with the time of their end.
    cuts: Sender<(Cut, u64)>,
    /// The group whose processes are watched, and the time of the next look at it.
    group: Option<(Cgroup, u64)>,
    /// Its processes that the kernel does not let this user sample.
    refused: HashSet<u32>,
    buffer: Vec<u8>,
    order: Order,
    /// The switches of each ring.
    paces: Vec<Pace>,
    /// What recording who holds locks may cost.
    budget: Budget,
}

/// Lets this thread run before others, if that is allowed: a full ring loses records.
pub(crate) fn hurry() {
    const NICEST: i32 = -20;
    let thread = libc::id_t::from(own_thread());
    // SAFETY: the call takes no pointers. A refusal leaves the thread as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, NICEST) };
}

impl Reader {
    /// A reader that also watches what joins `group`.
    pub fn new(
        opened: Opened,
        account: Account,
        group: Option<Cgroup>,
        signals: Arc<Signals>,
        cuts: Sender<(Cut, u64)>,
    ) -> Reader {
        let paces = vec![Pace::new(now()); opened.rings.len()];
        Reader {
            opened,
            account,
            signals,
            cuts,
            group: group.map(|group| (group, 0)),
            refused: HashSet::new(),
            paces,
            buffer: Vec::new(),
            order: Order::default(),
            budget: Budget::new(now()),
        }
    }

    /// Reads to the end; returns the last interval and the time of its end.
    pub fn run(mut self) -> (Cut, u64) {
        self.account.ignore(own_thread());
        hurry();
        self.bound_holds(0);
        // Acquire: pairs with the release store of `Running::stop`.
        while !self.signals.stop.load(Ordering::Acquire) {
            self.wait();
            let round = now();
            let holds = self.read();
            self.bound_holds(holds);
            let horizon = round.saturating_sub(SETTLED);
            self.account_until(horizon);
            self.cut(horizon);
            self.look(round);
            // Relaxed: a hint.
            self.signals
                .over
                .store(self.account.is_over(), Ordering::Relaxed);
        }
        let end = now();
        // Cannot fail on this process's descriptors; later records are beyond the end anyway.
        let _ = self.opened.disable();
        self.read();
        self.account_until(end);
        (self.account.end(end), end)
    }

    /// Ends an interval at `time` if it is to end.
    fn cut(&mut self, time: u64) {
        // Acquire: pairs with the release store of `Recorder::cut`.
        if self.signals.cut.swap(false, Ordering::Acquire) {
            self.opened.forget_closed();
            // The receiver may be gone: the recording is to end then.
            let _ = self.cuts.send((self.account.cut(time), time));
        }
    }

    /// Waits for the next round.
    fn wait(&self) {
        let poll = |&fd: &i32| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled: Vec<libc::pollfd> = self.opened.leaders.iter().map(poll).collect();
        // SAFETY: the array has `polled.len()` entries and lives through the call.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as u64, ROUND) };
        let hung_up = polled.iter().any(|one| one.revents & libc::POLLHUP != 0);
        if ready < 0 || hung_up {
            // Interrupted, or the thread that opened the events has exited, which ends polling for
            // good: its records remain, and rounds go on by the clock.
            std::thread::sleep(std::time::Duration::from_millis(ROUND as u64));
        }
    }

    /// Reads all rings. Returns what it has cost to record who holds locks, on the CPU where it
    /// cost most.
    fn read(&mut self) -> usize {
        let mut holds = 0;
        let before = self.order.len();
        let mut periods = Vec::new();
        for (at, ring) in self.opened.rings.iter_mut().enumerate() {
            let first = self.order.len();
            self.buffer.clear();
            ring.read(&mut self.buffer);
            let order = &mut self.order;
            self.opened
                .decoder
                .decode(&self.buffer, |event| order.add(event));
            let new = self.order.since(first).iter();
            holds = holds.max(new.map(|stamped| stamped.event.cost_of_hold()).sum());
            let new = self.order.since(first).iter();
            // The idle thread's are no stacks to record.
            let is_off = |stamped: &&Stamped| match stamped.event {
                Event::Off { thread, .. } => thread.tid != 0,
                _ => false,
            };
            let switches = new.filter(is_off).count() as u64;
            let period = self.paces[at].count(switches, now());
            periods.extend(period.map(|period| (at, period)));
        }
        for (at, period) in periods {
            // Cannot fail on this process's descriptors and with these periods.
            let _ = self.opened.record_switches(at, period);
        }
        if !self.opened.sees_all() {
            self.meet(before);
        }
        holds
    }

    /// Records who holds locks only for as long as that may cost time, after `records` more.
    fn bound_holds(&mut self, records: usize) {
        if !self.opened.sees_holds {
            return;
        }
        let was_on = self.budget.is_on();
        self.budget.charge(records, now());
        let on = self.budget.is_on();
        // Cannot fail on this process's descriptors.
        if on != was_on && self.opened.record_holds(on).is_ok() {
            let (time, event) = (now(), Event::Holds(on));
            self.order.add(Stamped { time, event });
        }
    }

    /// Opens events for threads born since there were `before` events, and closes those of dead
    /// threads.
    fn meet(&mut self, before: usize) {
        for stamped in self.order.since(before) {
            match stamped.event {
                // The thread may be dead already, which is no error.
                Event::Fork { child, .. } => drop(self.opened.add_thread(child.tid, true)),
                Event::Exit { thread } => self.opened.drop_thread(thread.tid),
                _ => {}
            }
        }
    }

    /// Watches processes that have joined the group since the last look.
    fn look(&mut self, round: u64) {
        let Some((group, due)) = self.group.as_mut().filter(|(_, due)| *due <= round) else {
            return;
        };
        *due = round + LOOKS;
        let found = group.processes().unwrap_or_default();
        let is_known = |pid: &u32| {
            *pid == std::process::id()
                || self.account.family.has(*pid)
                || self.refused.contains(pid)
        };
        let joined: Vec<u32> = found.into_iter().filter(|pid| !is_known(pid)).collect();
        for pid in joined {
            let threads = self.account.join(pid, round.saturating_sub(SETTLED));
            if self.opened.add_process(&threads, true).is_err() {
                self.account.leave(pid);
                self.refused.insert(pid);
            }
        }
    }

    fn account_until(&mut self, horizon: u64) {
        for stamped in self.order.take_until(horizon) {
            self.account.take(stamped);
        }
    }
}

/// The time in nanoseconds, by the clock that stamps events.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to `time`, a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
