//! Contexts: the stacks on which the machine's code runs.
//!
//! Context *i* is the own one of CPU *i*; further contexts are those of a scheduler's tasks. A CPU
//! runs one context at a time, and continues with another when the running one asks for it: by a
//! switch (it stays suspended until a CPU switches back), or at its end (it is freed).

use super::access::{Kind, Room, Shared, touch};
use super::cpu::Doing;
use super::refund::Refund;
use super::sampler::Spent;
use super::stack::ContextStack;
use super::{Engine, Off, Running, Time};
use crate::arena::{self, Arena, offset_of};
use core::ptr::{from_ref, null};
use corosensei::{Coroutine, Yielder};
use machine::{Job, Locals};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The end of a context: the context with which the CPU continues, if any, or the payload of a
/// panic.
pub(super) type Ending = Result<Option<usize>, Box<dyn Any + Send>>;
pub(super) type Body = Coroutine<(), (), Ending, ContextStack>;
/// The last call of an ending task; returns the context that the CPU continues with.
pub(crate) type Exit = Box<dyn FnOnce() -> usize + Send>;

/// A stack with a job, and what the engine knows of its task.
pub(crate) struct Context {
    pub(super) body: Option<Body>,
    /// Where the running coroutine suspends itself.
    pub(super) yielder: *const Yielder<(), ()>,
    /// The task's words; null if they no longer exist.
    pub(crate) locals: *const Locals,
    /// The number of pins that the task holds.
    pub(crate) pins: u32,
    /// True if the task leaves its CPU because it waits for an event; otherwise it could go on.
    pub(crate) parks: bool,
    /// True if the task stands by: it waits for another task's work, and that task's account has
    /// the time.
    pub(crate) stands_by: bool,
    /// The time that the task gets back.
    pub(super) refund: Refund,
    /// True if a CPU runs the context.
    pub(crate) on: bool,
    /// The time for which no CPU has run the context, up to its last return.
    pub(crate) off: Time,
    /// The time since which no CPU has run the context.
    left: Time,
    /// The time since which it had been ready to run at the last switch to it.
    ready: Time,
}

impl Context {
    /// A context without a job.
    pub(crate) fn new() -> Self {
        Context {
            body: None,
            yielder: null(),
            locals: null(),
            pins: 0,
            parks: false,
            stands_by: false,
            refund: Refund::default(),
            on: false,
            off: 0,
            left: 0,
            ready: 0,
        }
    }

    /// How a task that no CPU runs spends its time; one that stands by, or gets it back, spends
    /// none.
    pub(super) fn off(&self) -> Option<Spent> {
        if self.refund.is_open() {
            return None;
        }
        match (self.parks, self.stands_by) {
            (true, false) => Some(Spent::Blocked),
            (true, true) => None,
            (false, _) => Some(Spent::Queued),
        }
    }
}

impl Engine {
    /// The running context.
    #[inline]
    pub(crate) fn context(&mut self) -> &mut Context {
        &mut self.contexts[self.current]
    }

    /// Gives context `index` a job, which ends with `exit`, if there is one.
    pub(super) fn fill(&mut self, index: usize, job: Job, exit: Option<Exit>) {
        let stack = ContextStack::new(&self.arena, index);
        let body = Coroutine::with_stack(stack, move |yielder, ()| -> Ending {
            let running = Running::current().expect("jobs run on CPUs");
            let locals = Locals::ZERO;
            // Both are valid while the coroutine lives, and not used afterwards.
            running.with(|engine| {
                engine.context().yielder = from_ref(yielder);
                engine.context().locals = from_ref(&locals);
                if engine.current >= engine.cpus.len() {
                    engine.back();
                }
            });
            let ended = catch_unwind(AssertUnwindSafe(job));
            let left = catch_unwind(AssertUnwindSafe(|| drop(locals)));
            running.with(|engine| engine.context().locals = null());
            running.drain(Room::All);
            ended.and(left)?;
            let Some(exit) = exit else {
                return Ok(None);
            };
            // `exit` runs with words of its own, since other tasks may end at the same time.
            let locals = Locals::ZERO;
            running.with(|engine| engine.context().locals = from_ref(&locals));
            let next = catch_unwind(AssertUnwindSafe(exit));
            drop(locals);
            running.with(|engine| engine.context().locals = null());
            running.drain(Room::All);
            next.map(Some)
        });
        *self.contexts[index] = Context {
            body: Some(body),
            ..Context::new()
        };
    }

    /// A new context for a task, pinned; `None` if all stacks are in use.
    pub(crate) fn create(&mut self, job: Job, exit: Exit) -> Option<usize> {
        let index = match self.unused.pop() {
            Some(index) => index,
            None if self.contexts.len() < arena::MOST_STACKS => {
                let index = self.contexts.len();
                self.arena.guard(index).ok()?;
                self.contexts.push(Box::new(Context::new()));
                index
            }
            None => return None,
        };
        self.fill(index, job, Some(exit));
        let now = self.cpu().clock;
        let context = &mut self.contexts[index];
        (context.pins, context.left) = (1, now);
        self.open_account(index);
        Some(index)
    }

    /// Switches the running CPU from its context to `to`, which has been ready since `ready`.
    fn leave_for(&mut self, to: usize, ready: Time) {
        self.charge(Spent::Working, None);
        self.spend(self.profile.kernel.switch);
        let (cpu, clock) = (self.running, self.cpu().clock);
        self.context().left = clock;
        self.go_on(cpu, to, ready);
    }

    /// Switches `cpu`, whose task has ended, to the context `to`.
    pub(super) fn go_on_after(&mut self, cpu: usize, to: usize) {
        self.spend(self.profile.kernel.switch);
        let clock = self.cpus[cpu].clock;
        self.go_on(cpu, to, clock);
    }

    /// Makes `to` the context of `cpu`.
    fn go_on(&mut self, cpu: usize, to: usize, ready: Time) {
        let from = self.cpus[cpu].context;
        self.contexts[from].on = false;
        self.contexts[to].on = true;
        self.contexts[to].ready = ready;
        self.change_credit(cpu, from, to);
        self.cpus[cpu].context = to;
        self.cpus[cpu].doing = Doing::Computing;
        self.agenda.set(cpu, self.cpus[cpu].clock);
    }

    /// The number of tasks that have not ended.
    pub(super) fn tasks(&self) -> usize {
        self.contexts.len() - self.cpus.len() - self.unused.len()
    }

    /// The tasks that have no CPU, and their contexts' numbers.
    fn without_cpu(&self) -> impl Iterator<Item = (usize, &Context)> {
        let tasks = self.contexts.iter().enumerate().skip(self.cpus.len());
        let tasks = tasks.map(|(index, one)| (index, &**one));
        tasks.filter(|(_, one)| one.body.is_some() && !one.on)
    }

    /// The time that tasks have been off CPUs, including those that still are.
    pub(crate) fn off_now(&self) -> Off {
        let mut off = self.off;
        for (_, one) in self.without_cpu() {
            let so_far = self.time.saturating_sub(one.left.max(self.cleared));
            match one.off() {
                Some(Spent::Blocked) => off.blocked += so_far,
                Some(_) => off.queued += so_far,
                None => {}
            }
        }
        off
    }

    /// The states of the tasks that have no CPU.
    pub(super) fn off_tasks(&self) -> impl Iterator<Item = String> {
        self.without_cpu().map(|(index, one)| {
            let state = if one.parks {
                "is blocked"
            } else {
                "waits for a CPU"
            };
            let task = index - self.cpus.len();
            format!("task {task} {state} since {} ns", one.left / 1000)
        })
    }

    /// Restarts the accounts.
    pub(crate) fn clear_off(&mut self) {
        self.off = Off::default();
        self.clear_lost();
        self.cleared = self.time;
    }

    /// Accounts for the time off CPUs of the running context: first it was blocked, then it waited
    /// for a CPU.
    fn back(&mut self) {
        let now = self.cpu().clock;
        let Context { left, ready, .. } = *self.context();
        let ready = ready.clamp(left, now);
        self.context().off += now - left;
        let cleared = self.cleared;
        if self.context().refund.is_open() {
            return self.charge_off(ready);
        }
        if !self.context().stands_by {
            self.off.blocked += ready.max(cleared) - left.max(cleared);
        }
        self.off.queued += now.max(cleared) - ready.max(cleared);
        self.charge_off(ready);
    }
}

/// Continues with the context `to`; returns when a CPU continues with the caller.
pub(crate) fn switch(to: usize, ready: Time) {
    let running = Running::current().expect("contexts run on CPUs");
    // The context may go on at another CPU, where its stores must be seen.
    running.drain(Room::All);
    running.with(|engine| engine.leave_for(to, ready));
    running.suspend();
    running.with(Engine::back);
}

/// Returns true if a CPU runs the task whose words are at this address; `None` without a scheduler.
/// It costs a load of one of the task's lines, in turn.
pub(crate) fn is_running(locals: usize) -> Option<bool> {
    let running = Running::current()?;
    running.scheduler()?;
    touch(Shared::of(locals as *const u64), Kind::Load);
    running.await_turn();
    let index = Arena::stack_of(offset_of(locals))?;
    running.with(|engine| engine.contexts.get(index).map(|one| one.on))
}
