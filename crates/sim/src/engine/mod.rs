//! The engine: coroutines as CPUs, one of them running at a time, in the order of simulated time.
//!
//! # Protocol
//! Each CPU has a clock, and a place in the agenda when it is not running. The scheduler
//! ([`schedule`]) takes the earliest, lets it run, and gets control back when it waits. A running
//! CPU's effects on the machine ([`access`], [`tasks`]) are of two kinds:
//!
//! - effects that only concern the CPU itself, or lines to which it has the right, may happen ahead
//!   of other CPUs' clocks by less than the directory's warning (see [`crate::coherence`]);
//! - all other effects happen *in turn*: the CPU first waits until no actor is earlier.
//!
//! Both limits are kept as agenda keys while a CPU runs. So the outcome does not depend on how far
//! CPUs may run ahead; a test turns that off and compares.
//!
//! A second actor of each CPU is its store buffer, which performs stores by itself.
//!
//! # Safety
//! An engine belongs to the thread that runs it. Code on a simulated CPU finds it through a
//! thread-local pointer ([`Running`]) and borrows it for closures that do not suspend; the
//! scheduler does not hold it while a CPU runs.

mod access;
pub(crate) mod agenda;
mod buffer;
pub(crate) mod context;
pub(crate) mod cpu;
pub(crate) mod interrupt;
pub(crate) mod preempt;
pub(crate) mod refund;
pub(crate) mod sampler;
mod schedule;
mod speed;
mod stack;
mod tasks;
pub(crate) mod watch;

pub(crate) use access::{
    Kind, Shared, advance, allocation, deallocation, fence, in_turn, ping, store, touch,
};
pub(crate) use context::{is_running, switch};
pub(crate) use interrupt::{is_wanted, kick, safe_point, set_timer, wait_for_interrupt};
pub(crate) use schedule::Outcome;
pub(crate) use tasks::{delay, park, relax, sleep, unpark, yield_now};

use crate::arena::{Arena, global, heap::Heap};
use crate::coherence::{Directory, LineId};
use crate::label::Labels;
use crate::profile::MachineProfile;
use agenda::{Agenda, NEVER, key};
use context::Context;
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use cpu::{Cpu, Doing};
use machine::soft::Oracle;
use machine::{Anchor, CpuRange, Scheduler};
use std::sync::Arc;
use watch::Watch;

/// Picoseconds of simulated time.
pub(crate) type Time = u64;

thread_local! {
    /// The engine whose CPU this thread is running.
    static CURRENT: Cell<*mut Engine> = const { Cell::new(null_mut()) };
}

/// The running CPU's handle of its engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running(NonNull<Engine>);

impl Running {
    /// The caller's engine; `None` outside the simulated CPUs.
    #[inline(always)]
    pub(crate) fn current() -> Option<Running> {
        NonNull::new(CURRENT.get()).map(Running)
    }

    /// Borrows the engine for `f`, which neither suspends the CPU nor calls this again. Its
    /// allocations come from the host.
    #[inline(always)]
    pub(crate) fn with<R>(self, f: impl FnOnce(&mut Engine) -> R) -> R {
        let _host = OnHost::enter();
        // SAFETY: `CURRENT` is set while this thread runs one of the engine's CPUs; only code on
        // that CPU uses a `Running` (it is not Send, and is not kept); the scheduler holds no
        // reference meanwhile; and `f` does not call this again.
        f(unsafe { &mut *self.0.as_ptr() })
    }

    /// Gives the thread to the scheduler until the CPU is due again. The CPU waits for `line`, if
    /// that is given.
    fn wait(self, line: Option<LineId>) {
        let spent = self.with(Engine::before_wait);
        self.suspend();
        if let Some(spent) = spent {
            self.with(|engine| engine.charge(spent, line));
        }
    }

    /// Gives the thread to the engine.
    fn suspend(self) {
        let yielder = self.with(|engine| engine.context().yielder);
        // SAFETY: the yielder lives while its coroutine runs, which is now.
        unsafe { (*yielder).suspend(()) };
    }

    /// Returns true if all stores of the CPU are in memory.
    pub(crate) fn has_stored_all(self) -> bool {
        self.with(|engine| engine.cpu().stores.is_empty())
    }

    /// Runs `look` as code outside the machine's CPUs, which takes no time. It must not wait.
    pub(crate) fn aside<R>(self, look: impl FnOnce() -> R) -> R {
        /// Puts the engine back, also when `look` panics.
        struct Back(*mut Engine);
        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _back = Back(CURRENT.replace(null_mut()));
        look()
    }

    /// Returns true if this is a CPU of the engine at `engine`.
    pub(crate) fn is_of(self, engine: *const Engine) -> bool {
        core::ptr::eq(self.0.as_ptr(), engine)
    }
}

/// A machine's state except its memory.
pub(crate) struct Engine {
    pub(crate) profile: MachineProfile,
    pub(crate) range: CpuRange,
    pub(crate) cpus: Box<[Cpu]>,
    /// The contexts of the CPUs, then those of tasks. Boxed, since the running one must not move.
    #[allow(clippy::vec_box)]
    pub(crate) contexts: Vec<Box<Context>>,
    /// The contexts of tasks that have ended.
    pub(crate) unused: Vec<usize>,
    /// Decides which task runs where, if jobs are not CPUs.
    pub(crate) scheduler: Option<Arc<dyn Scheduler>>,
    /// Time of tasks that were on no CPU, since the accounts were cleared.
    pub(crate) off: Off,
    /// When the last holder of a lock left it, less what the holder had got back and not spent.
    pub(crate) left: refund::Left,
    /// The credit that tasks have forfeited since then, and what they had at that time.
    pub(crate) forfeited: Time,
    pub(crate) owed: Time,
    /// When the accounts were cleared.
    pub(crate) cleared: Time,
    pub(crate) directory: Directory,
    pub(crate) agenda: Agenda,
    /// The index of the running CPU.
    pub(crate) running: usize,
    /// The index of the context that it runs.
    pub(crate) current: usize,
    /// The key below which it is the running CPU's turn.
    pub(crate) turn: u64,
    /// The key below which the running CPU may use the rights it has.
    pub(crate) ahead: u64,
    /// Nothing happens at or after this time.
    pub(crate) until: Time,
    /// The time that all actors have passed.
    pub(crate) time: Time,
    /// Jobs start within this time of each other.
    pub(crate) spread: Time,
    /// How far CPUs may run ahead of other cores, and of their core's other thread.
    pub(crate) lookahead: (Time, Time),
    /// Wake-ups in a row that found nothing changed.
    pub(crate) idle: u64,
    /// When the next page can be zeroed, per socket.
    pub(crate) zeroing: Box<[Time]>,
    pub(crate) watch: Watch,
    pub(crate) oracle: Oracle,
    pub(crate) labels: Labels,
    /// Objects whose lines are at hand wherever they are used: their transfers take no time.
    pub(crate) at_hand: Vec<String>,
    pub(crate) counts: Counts,
    pub(crate) anchor: Anchor,
    pub(crate) heap: *mut Heap,
    pub(crate) arena: Arena,
}

/// The time that tasks of a scheduler were off CPUs, in picoseconds, charged when they come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Off {
    /// Picoseconds blocked.
    pub blocked: u64,
    /// Picoseconds ready, waiting for a CPU.
    pub queued: u64,
}

/// Counts of the engine's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses to modelled lines.
    pub accesses: u64,
    /// Transfers of lines between CPUs.
    pub transfers: u64,
    /// Switches to a CPU.
    pub switches: u64,
    /// Random preemptions ([`crate::Preempt`]).
    pub preemptions: u64,
}

impl Engine {
    /// How far `cpu` may be ahead of `actor`.
    fn slack(&self, cpu: usize, actor: usize) -> Time {
        let cores = self.profile.topology.sockets * self.profile.topology.cores;
        if actor % cores == cpu % cores {
            self.lookahead.1
        } else {
            self.lookahead.0
        }
    }

    /// Sets the limits of the CPU that is about to run.
    fn set_limits(&mut self, cpu: usize) {
        let end = key(self.until, 0);
        let first = self.agenda.first();
        self.turn = first.min(end);
        let others = self.agenda.next().map(|(time, _)| (time, self.lookahead.0));
        let cpus = self.cpus.len();
        let siblings = self
            .siblings(cpu)
            .flat_map(|sibling| [sibling, sibling + cpus]);
        let siblings = siblings.map(|actor| (self.agenda.of(actor), self.lookahead.1));
        let mut ahead = end;
        for (time, slack) in others.into_iter().chain(siblings) {
            if time < NEVER {
                ahead = ahead.min(key(time + slack, 0));
            }
        }
        self.ahead = ahead.max(self.turn);
    }

    /// The other threads of a CPU's core.
    pub(crate) fn siblings(&self, cpu: usize) -> impl Iterator<Item = usize> + use<> {
        let topology = &self.profile.topology;
        let cores = topology.sockets * topology.cores;
        let threads = (0..topology.threads).map(move |thread| cpu % cores + thread * cores);
        threads.filter(move |&thread| thread != cpu)
    }

    /// Puts `actor` in the agenda while another runs.
    pub(crate) fn schedule(&mut self, actor: usize, time: Time) {
        self.agenda.set(actor, time);
        if time < NEVER {
            self.turn = self.turn.min(key(time, actor));
            let slack = self.slack(self.running, actor);
            self.ahead = self.ahead.min(key(time + slack, 0)).max(self.turn);
        }
    }

    /// The running CPU.
    #[inline]
    pub(crate) fn cpu(&mut self) -> &mut Cpu {
        &mut self.cpus[self.running]
    }

    /// Lets the running CPU compute for `time`, at its speed, as far as its task has no credit.
    #[inline]
    pub(crate) fn spend(&mut self, time: Time) {
        let cost = (time * self.cpu().slowness) >> 10;
        let cost = self.pay(cost);
        self.cpu().clock += cost;
    }
}

/// While it lives, the calling CPU's allocations, which are the engine's own, come from the host.
struct OnHost(*mut Heap);

impl OnHost {
    #[inline]
    fn enter() -> Self {
        OnHost(global::switch(null_mut()))
    }
}

impl Drop for OnHost {
    fn drop(&mut self) {
        global::switch(self.0);
    }
}

/// The activity of a CPU, in a few words.
pub(crate) fn describe(doing: Doing) -> &'static str {
    match doing {
        Doing::Nothing => "has nothing to do",
        Doing::Computing => "computes",
        Doing::Fetching => "waits for a line",
        Doing::Draining(_) => "waits for its store buffer",
        Doing::Spinning => "spins",
        Doing::Parked => "is blocked",
        Doing::Idle => "has no task to run",
        Doing::Busy => "computes for its task",
    }
}
