//! The operations of a scheduler.

use crate::cpu::Cpu;
use crate::table::Table;
use crate::{Leaving, Policy, TaskRef, Why};
use machine::{Contexts, CpuRange, Job, Scheduler, SharedCell, TaskName};
use sync::PerCpu;

/// A scheduler.
pub struct Sched<M: Contexts, P: Policy<M>> {
    // Dropped before the table, because it may have references to tasks.
    pub(crate) policy: P,
    pub(crate) cpus: PerCpu<Cpu<M, P>, M>,
    pub(crate) table: Table<M, P>,
}

impl<M: Contexts, P: Policy<M>> Sched<M, P> {
    /// A scheduler for these CPUs.
    pub fn new(cpus: CpuRange) -> Self {
        Sched {
            policy: P::new(cpus),
            cpus: PerCpu::new(cpus, |_| Cpu::new()),
            table: Table::new(),
        }
    }

    /// The policy that chooses among ready tasks.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Hands `task`, which is ready and runs nowhere, to the policy.
    pub(crate) fn hand_over(&self, pin: &M::Pin, task: TaskRef<M, P>, why: Why, now: u64) {
        // SAFETY: exactly one caller hands a task over, and the policy does not have it yet.
        unsafe { *task.ready_since.write() = now };
        let here = self.cpus.index(pin);
        if let Some(cpu) = self.policy.ready(task, here, why, now) {
            self.interrupt_cpu(pin, cpu);
        }
    }

    /// Interrupts the CPU with this index.
    pub(crate) fn interrupt_cpu(&self, pin: &M::Pin, cpu: usize) {
        // The idle context looks for a task before it waits.
        let here = cpu == self.cpus.index(pin) && self.cpus.of(cpu).current(pin).is_none();
        if !here {
            M::kick(cpu);
        }
    }

    /// Ends the calling task; returns the context that the CPU continues with.
    pub(crate) fn exit(&self) -> M::Context {
        let pin = M::pin();
        let task = self.cpus.get(&pin).current(&pin);
        task.expect("a task ends").state.end();
        let target = self.decide(&pin, Leaving::Ends);
        // The pin ends with the context.
        core::mem::forget(pin);
        target.expect("a task that ends leaves").0
    }
}

impl<M: Contexts, P: Policy<M>> Scheduler for Sched<M, P> {
    fn run(&'static self) -> ! {
        let pin = M::pin();
        let cpu = self.cpus.get(&pin);
        cpu.local(&pin, |local| local.idle = Some(M::context()));
        drop(pin);
        loop {
            let pin = M::pin();
            // The idle context has no current task, so the reason does not count.
            if let Some(target) = self.decide(&pin, Leaving::Yields) {
                self.switch(pin, target);
            } else if self.policy.idle(self.cpus.index(&pin)) {
                self.set_timer(&pin, M::now());
                M::wait_for_interrupt(pin);
            }
        }
    }

    fn start(&'static self, job: Job) {
        let place = self.reserve().expect("memory for a task");
        place.start(job);
    }

    fn interrupt(&self) {
        let pin = M::pin();
        let index = self.cpus.index(&pin);
        let cpu = self.cpus.of(index);
        let now = M::now();
        cpu.local(&pin, |local| local.timer = u64::MAX);
        self.wake_sleepers(&pin, now);
        let Some(current) = cpu.current(&pin) else {
            return self.set_timer(&pin, now);
        };
        let tick = self.policy.tick(index, current, now);
        if let Some(cpu) = tick.kick {
            self.interrupt_cpu(&pin, cpu);
        }
        if tick.preempt {
            self.leave(pin, Leaving::Preempted);
        } else {
            self.set_timer(&pin, now);
        }
    }

    fn current_task(&self) -> TaskName {
        let pin = M::pin();
        let current = self.cpus.get(&pin).current(&pin);
        // No task has the name 0: generations begin at 1.
        current.map_or(TaskName(0), |task| task.name())
    }

    fn park(&self) {
        let pin = M::pin();
        let current = self.cpus.get(&pin).current(&pin);
        let task = current.expect("a task parks, not a CPU");
        if !task.state.take_permit() {
            self.leave(pin, Leaving::Parks);
        }
    }

    fn unpark(&self, name: TaskName) {
        let Some((task, generation)) = self.table.find(name) else {
            return;
        };
        let pin = M::pin();
        if task.state.unpark(generation) {
            let now = M::now();
            self.hand_over(&pin, task, Why::Woken, now);
            self.set_timer(&pin, now);
        }
    }

    fn yield_now(&self) {
        let pin = M::pin();
        if self.cpus.get(&pin).current(&pin).is_some() {
            self.leave(pin, Leaving::Yields);
        }
    }

    fn sleep_until(&self, time: u64) {
        self.sleep(time);
    }
}
