//! The default policy: a queue for each CPU, fair by virtual time.
//!
//! # Fairness
//! A task's *virtual time* is the time it has run. A CPU runs the ready task that has least of it,
//! for [`SLICE`] at a time. Each queue has a *floor*, the least virtual time among its tasks, which
//! never falls. A task outside the queues keeps its *lag*: how far its virtual time is above the
//! floor; so it can go to another queue, whose floor is another one. Time asleep counts against the
//! lag, down to -[`BONUS`]: a task that has slept gets the CPU before one that has run, and at once
//! if it is [`GRAIN`] behind. A new task begins with its parent's lag, so making tasks gains no
//! time. A task that yields goes behind all that wait. (The ideas are those of Linux's CFS, 2.6.23
//! to 6.5: virtual run time, wake-up preemption, a bounded credit for sleepers.)
//!
//! # Which CPU
//! A woken task goes to the CPU it ran on last, if that is idle; else to an idle one among its
//! [`NEAR`] neighbours; else to its last one. A CPU without a task takes one from a neighbour's
//! queue before it waits. A CPU with waiting tasks gives one to an idle CPU at its tick, or to one
//! with fewer (`balance`). Neighbours of CPU `c` are `c ^ 1`, `c ^ 2`, …: aligned groups first, and
//! different CPUs look in different orders. (The machine tells nothing else of its topology.)
//!
//! No line is written by all CPUs. A task that sleeps and wakes on its CPU writes the lines of that
//! CPU and its own; others write those only to hand over a task, or to take one.
//!
//! # No task is forgotten
//! A ready task is in the queue of some CPU `c`, and `c` takes it, or another CPU does:
//!
//! - *`c` runs a task.* It looks at its queue when the task leaves. If the task never leaves, `c`
//!   must have a tick: `crowded` says so, under the queue's lock. `c` sets it when it begins to run
//!   a task and others wait; the CPU that enqueues the first one later sets it and interrupts `c`,
//!   which then sets its timer. (On `c` itself the scheduler does that after [`Policy::ready`].)
//! - *`c` runs none*, which the queue also says under its lock. Either `c` still has to look at the
//!   queue, or it has found it empty and goes idle:
//!
//!   ```text
//!   c:        idle[c] = IDLE; fence;            if waiting[c] > 0, look again; wait
//!   enqueuer: push; waiting[c] += 1; fence;     if idle[c] is IDLE, interrupt c
//!   ```
//!   Of the two fences one comes first (Dekker's pattern), so `c` sees the task, or the enqueuer
//!   sees `c` idle. An interrupt that comes before `c` waits ends the wait at once.
//! - *The enqueuer has claimed `c`* (IDLE → CLAIMED, so that two wakers choose two CPUs). It
//!   interrupts `c` after the push in any case. Another enqueuer that finds `c` CLAIMED need not:
//!   if `c` waits, that interrupt ends the wait; and before `c` waits again it sets IDLE, which
//!   comes after that enqueuer's look, so it sees the count.
//!
//! So a task waits for a busy CPU while another is idle only until the next tick, and only if the
//! idle one was not among the neighbours, or was busy when the waker looked.
//!
//! # Bounds
//! Where tasks have [`Bounds`], a task is only in the queue of a CPU that they allow, and another
//! CPU takes only tasks that may run there. A machine without them ([`Unbound`]) pays nothing.

mod balance;
mod bounds;
#[doc(hidden)]
pub mod idle;
mod queue;

use crate::heap::Node;
use crate::{Leaving, Policy, TaskRef, Tick, Why};
pub use bounds::{Bounds, Unbound};
use idle::Idle;
use machine::{Contexts, CpuRange, SharedCell};
use queue::{Origin, Owner, Queue};
use sync::PerCpu;

/// Nanoseconds that a task runs while others wait.
pub const SLICE: u64 = 3_000_000;
/// How far a woken task's virtual time must be behind the running task's to preempt it.
pub const GRAIN: u64 = 500_000;
/// The largest credit of virtual time for sleep.
pub const BONUS: u64 = SLICE;
/// The number of neighbours that a waker, or a CPU that has run out of tasks, looks at.
pub const NEAR: usize = 16;

/// The policy, for tasks with bounds `B`.
pub struct Best<M: Contexts, B: Bounds = Unbound> {
    queues: PerCpu<Queue<M, B>, M>,
    idle: Idle<M>,
}

/// The policy's words in a task.
pub struct Entry<M: Contexts, B: Bounds = Unbound> {
    /// Guarded by the lock of the queue that the task is in.
    node: Node<M, TaskRef<M, Best<M, B>>>,
    /// Owned by the queue that the task is in, or by the CPU that runs it.
    account: M::Cell<Account>,
    /// Owned like `account`; only the task itself changes it.
    bounds: M::Cell<B>,
}

/// What a task outside the queues has used of the CPU.
#[derive(Clone, Copy)]
struct Account {
    /// Its virtual time less the floor of the queue that it was in.
    lag: i64,
    /// When it left that queue.
    left: u64,
}

impl<M: Contexts, B: Bounds> Entry<M, B> {
    /// The caller owns the task.
    fn set_bounds(&self, bounds: B) {
        // SAFETY: only the task's owner accesses it, and that is the caller.
        unsafe { *self.bounds.write() = bounds };
    }

    /// Returns true if the task may run on this CPU. The caller owns the task.
    fn may_run(&self, cpu: usize) -> bool {
        // SAFETY: only the task's owner accesses it, and that is the caller.
        B::NONE || unsafe { *self.bounds.read() }.allow(cpu)
    }

    /// The caller owns the task.
    fn set_account(&self, lag: i64, left: u64) {
        // SAFETY: only the task's owner accesses it.
        unsafe { *self.account.write() = Account { lag, left } };
    }

    /// The recorded lag, of a task that has not slept since then. The caller owns the task.
    fn lag(&self) -> i64 {
        // SAFETY: the caller owns the task, so no other task writes.
        unsafe { (*self.account.read()).lag }
    }

    /// The lag of a task that has slept until now, with the credit for that. The caller owns the
    /// task.
    fn lag_after_sleep(&self, now: u64) -> i64 {
        // SAFETY: the caller owns the task, so no other task writes.
        let account = unsafe { *self.account.read() };
        let slept = now.saturating_sub(account.left);
        account
            .lag
            .saturating_sub_unsigned(slept)
            .max(-(BONUS as i64))
    }
}

// SAFETY: a task is in one queue at most, and popped under that queue's lock, which orders the push
// before the pop.
unsafe impl<M: Contexts, B: Bounds> Policy<M> for Best<M, B> {
    const NAME: &'static str = "best";
    type Entry = Entry<M, B>;

    fn new(cpus: CpuRange) -> Self {
        let queues = PerCpu::new(cpus, |_| Queue::new());
        queues.label("run queue");
        Best {
            queues,
            idle: Idle::new(cpus),
        }
    }

    fn entry() -> Entry<M, B> {
        let account = Account { lag: 0, left: 0 };
        Entry {
            node: Node::new(),
            account: M::Cell::new(account),
            bounds: M::Cell::new(B::all()),
        }
    }

    fn begin(&self, task: TaskRef<M, Self>, parent: Option<TaskRef<M, Self>>, now: u64) {
        let lag = parent.map_or(0, |parent| self.queues.of(parent.cpu()).lag(now));
        task.entry().set_account(lag, now);
        if !B::NONE {
            // SAFETY: the parent runs on the calling CPU, which has it.
            let bounds = parent.map(|parent| unsafe { *parent.entry().bounds.read() });
            task.entry().set_bounds(bounds.unwrap_or_else(B::all));
        }
    }

    fn next(
        &self,
        cpu: usize,
        current: Option<(TaskRef<M, Self>, Leaving)>,
        now: u64,
    ) -> Option<TaskRef<M, Self>> {
        let own = self.queues.of(cpu);
        let next = own.next(current, now);
        let needs_one = current.is_none_or(|(_, leaving)| !leaving.stays_ready());
        let next = match next {
            None if needs_one => self.steal(cpu, now),
            _ => next,
        };
        if current.is_none() && next.is_some() {
            self.idle.end(cpu);
        }
        next
    }

    fn put_back(
        &self,
        cpu: usize,
        task: TaskRef<M, Self>,
        _leaving: Leaving,
        now: u64,
    ) -> Option<usize> {
        let lag = task.entry().lag();
        let pushed = self.queues.of(cpu).push(task, lag, now, Origin::Back);
        (pushed == Owner::Interrupt).then_some(cpu)
    }

    fn ready(&self, task: TaskRef<M, Self>, here: usize, why: Why, now: u64) -> Option<usize> {
        let home = match why {
            Why::New => here,
            Why::Woken => task.cpu(),
        };
        let home = self.within_bounds(task, home);
        let lag = task.entry().lag_after_sleep(now);
        let claimed = self.claim_near(task, home, here);
        let kick = self.enqueue(claimed.unwrap_or(home), here, task, lag, now);
        claimed.or(kick)
    }

    fn idle(&self, cpu: usize) -> bool {
        self.idle.begin(cpu, || {
            self.queues.of(cpu).waiting() > 0 || self.victim(cpu).is_some()
        })
    }

    fn tick(&self, cpu: usize, _current: TaskRef<M, Self>, now: u64) -> Tick {
        let own = self.queues.of(cpu);
        if !own.is_crowded() {
            return Tick::default();
        }
        let kick = self.balance(cpu, now);
        Tick {
            preempt: own.should_preempt(now),
            kick,
        }
    }

    fn deadline(&self, cpu: usize, _current: TaskRef<M, Self>, now: u64) -> u64 {
        self.queues.of(cpu).deadline(now)
    }
}

impl<M: Contexts, B: Bounds> Best<M, B> {
    /// `cpu` if the task may run there, else the first CPU where it may. The caller owns the task.
    fn within_bounds(&self, task: TaskRef<M, Self>, cpu: usize) -> usize {
        if task.entry().may_run(cpu) {
            return cpu;
        }
        let mut all = 0..self.queues.cpus().len();
        let allowed = all.find(|&cpu| task.entry().may_run(cpu));
        allowed.expect("a CPU within bounds")
    }

    /// Puts a task that the caller owns into the queue of `cpu`. Returns that CPU if it has to be
    /// interrupted and the caller has not claimed it.
    fn enqueue(
        &self,
        cpu: usize,
        here: usize,
        task: TaskRef<M, Self>,
        lag: i64,
        now: u64,
    ) -> Option<usize> {
        let from = if cpu == here {
            Origin::Here
        } else {
            Origin::Elsewhere
        };
        let kick = match self.queues.of(cpu).push(task, lag, now, from) {
            Owner::Looks => false,
            Owner::Interrupt => true,
            Owner::MayBeIdle => self.idle.claim(cpu),
        };
        kick.then_some(cpu)
    }

    /// Claims for the caller, on `here`, an idle CPU where `task` may run: `home`, its last one, or
    /// a CPU near that. `None` if none is idle, or `home` is `here` and has nothing else to run.
    fn claim_near(&self, task: TaskRef<M, Self>, home: usize, here: usize) -> Option<usize> {
        if home == here && self.queues.of(here).is_free() {
            return None;
        }
        let near = core::iter::once(home).chain(self.idle.near(home));
        near.take(NEAR + 1)
            .find(|&cpu| task.entry().may_run(cpu) && self.idle.claim(cpu))
    }
}
