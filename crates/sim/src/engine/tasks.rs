//! How a running CPU waits: spinning, pausing, blocking.

use super::agenda::NEVER;
use super::cpu::Doing;
use super::interrupt::overdue;
use super::sampler::Spent;
use super::{Engine, Running, Time, in_turn};
use crate::Sim;
use crate::task::Task;
use machine::{CpuId, Cpus, TaskName};

/// Pauses until a sleeping spinner looks again if nothing wakes it; doubles after each futile look.
const PATIENCE: u64 = 64;
const MOST_DOUBLINGS: u32 = 10;

/// Waits until a line that the CPU has read changes.
pub(crate) fn relax(round: u32) {
    let Some(running) = Running::current() else {
        return std::thread::yield_now();
    };
    if running.with(|engine| engine.fall_asleep(round)) {
        running.wait(None);
        overdue(running);
    }
}

/// Passes the time of `pauses` pauses. In a refunded section, waits until a line that the CPU has
/// read changes: there it would gain nothing by looking less often.
pub(crate) fn delay(pauses: u32) {
    if let Some(running) = Running::current() {
        if running.with(|engine| engine.cpu().is_refunded) {
            return relax(0);
        }
        running.with(|engine| engine.spin(u64::from(pauses) * engine.profile.core.pause));
    }
}

/// Yields the CPU to other tasks; without a scheduler there are none.
pub(crate) fn yield_now() {
    assert_unpinned();
    let Some(running) = Running::current() else {
        return std::thread::yield_now();
    };
    match running.scheduler() {
        Some(scheduler) => scheduler.yield_now(),
        None => running.with(|engine| engine.spin(engine.profile.kernel.yield_now)),
    }
}

/// Blocks the calling task until it has a permit, and consumes it.
pub(crate) fn park() {
    assert_unpinned();
    if let Some(scheduler) = Running::current().and_then(Running::scheduler) {
        return parks(|| scheduler.park());
    }
    if let Some(running) = in_turn()
        && running.with(Engine::block)
    {
        running.wait(None);
    }
}

/// Calls `wait`, in which the task leaves its CPU because it waits for an event.
fn parks(wait: impl FnOnce()) {
    let set = |parks| {
        let running = Running::current().expect("a task of a CPU");
        running.with(|engine| engine.context().parks = parks);
    };
    set(true);
    wait();
    set(false);
}

/// Suspends the calling task until the time that `end` computes from the current one. The task
/// keeps a permit that it gets meanwhile. No effect outside the machine's CPUs.
pub(crate) fn sleep(end: impl FnOnce(Time) -> Time) {
    assert_unpinned();
    let Some(running) = in_turn() else { return };
    if let Some(scheduler) = running.scheduler() {
        let end = running.with(|engine| end(engine.cpu().clock));
        return parks(|| scheduler.sleep_until(end.div_ceil(1000)));
    }
    running.with(|engine| engine.suspend(end));
    running.wait(None);
}

/// Gives `task` its permit.
pub(crate) fn unpark(task: Task) {
    if let Some(scheduler) = Running::current().and_then(Running::scheduler) {
        return scheduler.unpark(TaskName(task.serial));
    }
    if let Some(running) = in_turn() {
        running.with(|engine| engine.permit(task));
    }
}

/// Panics if the task is about to sleep while it holds a pin.
fn assert_unpinned() {
    assert!(Sim::pins() == 0, "a task sleeps while it is pinned");
}

impl Engine {
    /// Takes a pin of the CPU for the running task; returns the CPU's id.
    pub(crate) fn pin(&mut self) -> CpuId {
        self.context().pins += 1;
        self.range.cpu(self.running)
    }

    /// Drops a pin of the running task.
    pub(crate) fn unpin(&mut self) {
        self.context().pins -= 1;
    }

    /// Lets the running CPU spend `time` spinning.
    fn spin(&mut self, time: Time) {
        self.charge(Spent::Working, None);
        let cpu = self.cpu();
        cpu.clock += time;
        if !cpu.is_refunded {
            cpu.times.spinning += time;
            self.directory.charge_spin(self.running, time);
        }
        self.charge(Spent::Spinning, None);
    }

    /// Puts the running CPU to sleep on the lines it has read; if that is impossible, lets some
    /// time pass. Returns true if it sleeps.
    fn fall_asleep(&mut self, round: u32) -> bool {
        let (cpu, now) = (self.running, self.cpu().clock);
        let pause = self.profile.core.pause;
        if !self.directory.spinners.can_sleep(cpu) {
            self.directory.spinners.forget(cpu);
            self.spin(pause << round.min(6));
            return false;
        }
        let looks = self.directory.sleep(cpu, now);
        let patience = match self.watch.preempt() {
            // The task may be preempted before each look.
            Some(_) => PATIENCE,
            None => PATIENCE << self.cpu().vain.min(MOST_DOUBLINGS),
        };
        self.cpu().doing = Doing::Spinning;
        let until = looks.unwrap_or(now + patience * pause);
        self.agenda.set(cpu, until);
        true
    }

    /// Blocks the running CPU's task if it has no permit. Returns true if it had none.
    fn block(&mut self) -> bool {
        let cpu = self.running;
        if core::mem::take(&mut self.cpu().permit) {
            self.spend(self.profile.kernel.syscall);
            return false;
        }
        self.spend(self.profile.kernel.block);
        self.cpu().doing = Doing::Parked;
        self.agenda.set(cpu, NEVER);
        true
    }

    /// Suspends the running CPU's task until `end`; then the task has to be woken.
    fn suspend(&mut self, end: impl FnOnce(Time) -> Time) {
        let cpu = self.running;
        let end = end(self.cpu().clock);
        self.spend(self.profile.kernel.block);
        let end = end.max(self.cpu().clock) + self.profile.kernel.wake;
        self.cpu().doing = Doing::Parked;
        self.agenda.set(cpu, end);
    }

    /// Gives `task` its permit, and wakes it if it is blocked.
    fn permit(&mut self, task: Task) {
        self.spend(self.profile.kernel.syscall);
        let index = self.range.index_of(task.cpu);
        let Some(target) = self.cpus.get_mut(index) else {
            return;
        };
        if target.task != task.serial || target.doing == Doing::Nothing {
            return;
        }
        if target.doing == Doing::Parked && self.agenda.of(index) == NEVER {
            let wake = match target.is_refunded {
                true => 0,
                false => self.profile.kernel.wake,
            };
            let blocked = target.clock;
            let now = self.cpu().clock;
            self.schedule(index, blocked.max(now) + wake);
        } else {
            target.permit = true;
        }
    }
}
