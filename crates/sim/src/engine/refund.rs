//! Time that tasks get back: what would be if a part of their work cost nothing?
//!
//! In a refunded section a task's own steps take no time, but it waits for others as it must. At
//! the end of the section the task has this wait as credit: as much of its following computing, and
//! of the transfers of lines that it requests, takes no time. (The lines are on their way as long
//! as ever, for others.) A task that has waited for a lock in such a section catches up as soon as
//! it has the lock, and so releases it early: where the lock is the only cause, each task is as
//! fast as without it, and still only one at a time is inside.
//!
//! A lock is released when the stores before it are in memory. Nobody has to wait for those that a
//! task makes while its stores are free, between two sections.
//!
//! Other locks inside of such a lock are asked for in turn, so that nobody waits for them. But a
//! task with credit would have been there earlier by that much, and perhaps before the last holder
//! had left: then it would have waited, and credit does not pay for that.
//!
//! Interrupts in a section are not refunded: they would have come anyway. Credit does not pay for
//! waits outside sections: for lines that are on their way to others, for locks, or for sleep.

use super::cpu::Cpu;
use super::{Engine, Running, Time};
use crate::coherence::Terms;

/// A task's account of refunds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refund {
    /// The number of sections that the task is in.
    depth: u32,
    /// How often its stores are to be free.
    free_stores: u32,
    /// True if others notice at once what it writes in the outermost section.
    prompt: bool,
    /// When the outermost section began, plus the interrupts in it.
    begun: Time,
    /// The credit while the task is in a section, or on no CPU.
    credit: Time,
}

impl Refund {
    /// Returns true if the task is in a refunded section.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }
}

/// The times at which the last holders of some thousand locks left them, those used last. Has room
/// for all: CPUs must not allocate.
pub(crate) struct Left(Vec<(usize, Time)>);

impl Left {
    const SLOTS: usize = 1 << 12;

    pub(crate) fn new() -> Self {
        Left(vec![(0, 0); Self::SLOTS])
    }

    fn slot(lock: usize) -> usize {
        lock.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - Self::SLOTS.ilog2())
    }

    /// That of `lock`; 0 if it is not known.
    fn of(&self, lock: usize) -> Time {
        let (known, left) = self.0[Self::slot(lock)];
        if known == lock { left } else { 0 }
    }

    fn set(&mut self, lock: usize, left: Time) {
        self.0[Self::slot(lock)] = (lock, left);
    }
}

/// Begins a refunded section of the calling task. Sections may nest. If the outermost one is
/// `prompt`, others notice at once what the task writes.
pub(crate) fn begin(prompt: bool) {
    if let Some(running) = Running::current() {
        running.with(|engine| engine.begin_refund(prompt));
    }
}

/// Ends the calling task's section.
pub(crate) fn end() {
    if let Some(running) = Running::current() {
        running.with(Engine::end_refund);
    }
}

/// Takes the calling task's credit, unless its stores are free.
pub(crate) fn forfeit() {
    if let Some(running) = Running::current() {
        running.with(|engine| {
            let cpu = engine.cpu();
            if !cpu.is_refunded && !cpu.has_free_stores {
                engine.forfeited += core::mem::take(&mut engine.cpu().credit);
            }
        });
    }
}

/// The calling task has the lock `lock`. By what it has got back and not spent, it is there earlier
/// than the clock says: if that is before the last holder left, it loses as much as it would have
/// waited, in nanoseconds.
pub(crate) fn enter(lock: usize) -> u64 {
    Running::current().map_or(0, |running| {
        running.with(|engine| engine.enter(lock) / 1000)
    })
}

/// The calling task is about to release `lock`.
pub(crate) fn leave(lock: usize) {
    if let Some(running) = Running::current() {
        running.with(|engine| engine.leave(lock));
    }
}

/// From now on nobody waits for the calling task's stores, until the calls with `false` are as many
/// as those with `true`.
pub(crate) fn free_stores(free: bool) {
    if let Some(running) = Running::current() {
        running.with(|engine| {
            let refund = &mut engine.context().refund;
            refund.free_stores = match free {
                true => refund.free_stores + 1,
                false => refund.free_stores.saturating_sub(1),
            };
            engine.cpu().has_free_stores = engine.context().refund.free_stores > 0;
        });
    }
}

/// More than a task can spend.
const UNLIMITED: Time = Time::MAX / 4;

impl Cpu {
    /// The terms of the running task's requests.
    #[inline]
    pub(super) fn terms(&self) -> Terms {
        Terms {
            credit: self.credit,
            at_hand: self.is_refunded,
            prompt: self.is_prompt,
        }
    }

    /// The terms of the running task's stores.
    #[inline]
    pub(super) fn store_terms(&self) -> Terms {
        Terms {
            credit: if self.has_free_stores { UNLIMITED } else { 0 },
            at_hand: self.is_refunded,
            prompt: self.is_prompt,
        }
    }
}

impl Engine {
    fn begin_refund(&mut self, prompt: bool) {
        let (clock, credit) = (self.cpu().clock, self.cpu().credit);
        let refund = &mut self.context().refund;
        refund.depth += 1;
        if refund.depth == 1 {
            (refund.begun, refund.credit, refund.prompt) = (clock, credit, prompt);
            self.set_terms(self.running, self.current);
        }
    }

    fn end_refund(&mut self) {
        let clock = self.cpu().clock;
        let refund = &mut self.context().refund;
        refund.depth -= 1;
        if refund.depth == 0 {
            refund.credit += clock.saturating_sub(refund.begun);
            self.set_terms(self.running, self.current);
        }
    }

    /// The time for which tasks have waited and which they have not made up for, since the accounts
    /// were cleared.
    pub(crate) fn lost(&self) -> Time {
        (self.forfeited + self.outstanding()).saturating_sub(self.owed)
    }

    /// Begins the account of lost time.
    pub(super) fn clear_lost(&mut self) {
        (self.forfeited, self.owed) = (0, self.outstanding());
    }

    /// What tasks have got back and not spent, or will get in the sections that they are in.
    fn outstanding(&self) -> Time {
        let contexts = self.contexts.iter().map(|one| match one.refund {
            refund if refund.is_open() => self.time.saturating_sub(refund.begun) + refund.credit,
            _ if one.on => 0,
            refund => refund.credit,
        });
        let running = self.cpus.iter().filter(|cpu| !cpu.is_refunded);
        contexts.chain(running.map(|cpu| cpu.credit)).sum()
    }

    fn enter(&mut self, lock: usize) -> Time {
        let cpu = self.cpu();
        if cpu.is_refunded {
            return 0;
        }
        let (clock, credit) = (cpu.clock, cpu.credit);
        let left = self.left.of(lock);
        let wait = left
            .saturating_sub(clock.saturating_sub(credit))
            .min(credit);
        self.cpu().credit -= wait;
        wait
    }

    fn leave(&mut self, lock: usize) {
        let cpu = self.cpu();
        if !cpu.is_refunded {
            let at = cpu.clock.saturating_sub(cpu.credit);
            self.left.set(lock, at);
        }
    }

    /// Leaves `time` of the open section out of its refund.
    pub(crate) fn keep_from_refund(&mut self, time: Time) {
        self.context().refund.begun += time;
    }

    /// Takes `cost` from the running task's credit, as far as that reaches; returns the rest.
    #[inline]
    pub(super) fn pay(&mut self, cost: Time) -> Time {
        let cpu = self.cpu();
        let paid = cost.min(cpu.credit);
        cpu.credit -= paid;
        cost - paid
    }

    /// Gives `cpu` the credit of the context `to`, with which it continues, instead of that of
    /// `from`.
    pub(super) fn change_credit(&mut self, cpu: usize, from: usize, to: usize) {
        if !self.cpus[cpu].is_refunded {
            self.contexts[from].refund.credit = self.cpus[cpu].credit;
        }
        self.set_terms(cpu, to);
    }

    /// Lets `cpu` work on the terms of `context`, which it runs.
    pub(super) fn set_terms(&mut self, cpu: usize, context: usize) {
        let (cpu, refund) = (&mut self.cpus[cpu], &self.contexts[context].refund);
        cpu.is_refunded = refund.is_open();
        cpu.is_prompt = refund.is_open() && refund.prompt;
        cpu.has_free_stores = refund.free_stores > 0;
        cpu.credit = match cpu.is_refunded {
            true => UNLIMITED,
            false => refund.credit,
        };
    }
}
