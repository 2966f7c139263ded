//! How a CPU goes from one context to another.
//!
//! # Protocol
//! ```text
//! leave:   pin; lock; next; write current and previous; switch to the next context
//! arrive:  put the previous task back, if it could go on; unlock;
//!          settle it, if it parks; free its place, if it has ended;
//!          activate the task's address space; unpin
//! ```
//! The context with which the CPU continues calls `arrive`, on the same CPU, for the context that
//! the CPU has left: another CPU may run the previous task, or free it, only when this one is off
//! its stack. All of it is pinned, so nothing comes in between.

use crate::{Leaving, Policy, Sched, TaskRef};
use machine::{Contexts, SharedCell};
use sync::off_cpu::off_cpu;

/// The context a switch continues with, and when it became ready.
pub(crate) type Target<M> = (<M as Contexts>::Context, u64);

impl<M: Contexts, P: Policy<M>> Sched<M, P> {
    /// Takes the calling task off its CPU. Returns when it is back on a CPU, or did not have to
    /// leave.
    pub(crate) fn leave(&self, pin: M::Pin, leaving: Leaving) {
        off_cpu::<M, _>(|| match self.decide(&pin, leaving) {
            Some(target) => self.switch(pin, target),
            None => {
                self.set_timer(&pin, M::now());
                drop(pin);
            }
        });
    }

    /// Chooses the next context and prepares the switch to it; `None` if the calling context goes
    /// on.
    pub(crate) fn decide(&self, pin: &M::Pin, leaving: Leaving) -> Option<Target<M>> {
        let index = self.cpus.index(pin);
        let cpu = self.cpus.of(index);
        let previous = cpu.current(pin).map(|task| (task, leaving));
        let now = M::now();
        self.policy.lock(index);
        let next = self.policy.next(index, previous, now);
        let goes_on = previous.is_none_or(|(_, leaving)| leaving.stays_ready());
        if next.is_none() && goes_on {
            self.policy.unlock(index);
            return None;
        }
        let idle = cpu.local(pin, |local| {
            local.current = next;
            local.previous = previous;
            local.idle
        });
        Some(match next {
            // SAFETY: the policy has returned the task, so no other task reads or writes its words.
            Some(task) => unsafe { ((*task.context.read()), *task.ready_since.read()) },
            None => (idle, now),
        })
        .map(|(context, ready)| (context.expect("a task and a CPU have a context"), ready))
    }

    /// Switches the calling CPU to the target of [`Sched::decide`].
    pub(crate) fn switch(&self, pin: M::Pin, (context, ready): Target<M>) {
        // SAFETY: the context is this CPU's idle one, which runs nowhere else, or that of a task
        // that the policy has returned to this CPU: it has left the one before (`arrive`), and is
        // returned once. The pin is dropped after the switch.
        unsafe { M::switch(context, ready) };
        self.arrive();
        drop(pin);
    }

    /// Completes a switch to the calling context: see the module's head.
    pub(crate) fn arrive(&self) {
        // A new pin: the context may have been on another CPU before the switch.
        let pin = M::pin();
        let index = self.cpus.index(&pin);
        let cpu = self.cpus.of(index);
        let now = M::now();
        let (previous, current, last) = cpu.local(&pin, |local| {
            let last = local.last;
            local.last = local.current.or(last);
            (local.previous.take(), local.current, last)
        });
        let mut kick = None;
        if let Some((task, leaving)) = previous.filter(|(_, leaving)| leaving.stays_ready()) {
            // SAFETY: the task is not in the policy's hands yet, and has left its CPU.
            unsafe { *task.ready_since.write() = now };
            kick = self.policy.put_back(index, task, leaving, now);
        }
        self.policy.unlock(index);
        if let Some(cpu) = kick {
            self.interrupt_cpu(&pin, cpu);
        }
        if let Some((task, leaving)) = previous {
            self.has_left(&pin, task, leaving, now);
        }
        if let Some(task) = current {
            self.activate(task, index, last);
        }
        self.set_timer(&pin, now);
    }

    /// Settles `task`, which has left the calling CPU to park; if it has ended, frees its place.
    fn has_left(&self, pin: &M::Pin, task: TaskRef<M, P>, leaving: Leaving, now: u64) {
        match leaving {
            Leaving::Parks if !task.state.settle() => {
                self.hand_over(pin, task, crate::Why::Woken, now);
            }
            Leaving::Ends => {
                let cpu = self.cpus.get(pin);
                cpu.free(pin, |list| self.table.give(list, task));
            }
            _ => {}
        }
    }

    /// Activates the address space of the calling task, which is back on the CPU with this index,
    /// whose last task was `last`.
    fn activate(&self, task: TaskRef<M, P>, index: usize, last: Option<TaskRef<M, P>>) {
        let same_cpu = task.set_cpu(index);
        if !(same_cpu && last == Some(task)) {
            M::with_locals(|locals| {
                if let Some(at_switch) = locals.at_switch.get() {
                    at_switch(locals);
                }
            });
        }
    }

    /// Sets the calling CPU's timer for its next wake-up or tick.
    pub(crate) fn set_timer(&self, pin: &M::Pin, now: u64) {
        let index = self.cpus.index(pin);
        let cpu = self.cpus.of(index);
        let tick = cpu
            .current(pin)
            .map(|task| self.policy.deadline(index, task, now));
        let wanted = cpu.first_sleeper(pin).min(tick.unwrap_or(u64::MAX));
        // An earlier interrupt does no harm, and setting a timer takes time.
        let earlier = cpu.local(pin, |local| {
            let earlier = wanted < local.timer;
            if earlier {
                local.timer = wanted;
            }
            earlier
        });
        if earlier {
            M::set_timer(wanted);
        }
    }
}
