//! How a running CPU waits: spinning, pausing, blocking.

use super::agenda::NEVER;
use super::cpu::Doing;
use super::sampler::Spent;
use super::{Engine, Running, Time, in_turn};
use crate::task::Task;

/// Pauses until a sleeping spinner looks again, should nothing have woken it; doubles
/// each time in vain.
const PATIENCE: u64 = 64;
const MOST_DOUBLINGS: u32 = 10;

/// Waits for what the CPU has read to change.
pub(crate) fn relax(round: u32) {
    let Some(running) = Running::current() else {
        return std::thread::yield_now();
    };
    if running.with(|engine| engine.fall_asleep(round)) {
        running.wait(None);
    }
}

/// Lets `pauses` pass.
pub(crate) fn delay(pauses: u32) {
    if let Some(running) = Running::current() {
        running.with(|engine| engine.spin(u64::from(pauses) * engine.profile.core.pause));
    }
}

/// Offers the CPU to other tasks. There are none: each has its own.
pub(crate) fn yield_now() {
    match Running::current() {
        None => std::thread::yield_now(),
        Some(running) => running.with(|engine| engine.spin(engine.profile.kernel.yield_now)),
    }
}

/// Blocks the calling task until it has a permit, and takes that.
pub(crate) fn park() {
    if let Some(running) = in_turn()
        && running.with(Engine::block)
    {
        running.wait(None);
    }
}

/// Suspends the calling task until the time that `end` makes of now. A permit that it gets
/// meanwhile is kept. Nothing on no CPU.
pub(crate) fn sleep(end: impl FnOnce(Time) -> Time) {
    if let Some(running) = in_turn() {
        running.with(|engine| engine.suspend(end));
        running.wait(None);
    }
}

/// Gives `task` its permit.
pub(crate) fn unpark(task: Task) {
    if let Some(running) = in_turn() {
        running.with(|engine| engine.permit(task));
    }
}

impl Engine {
    /// The running CPU spends `time` spinning.
    fn spin(&mut self, time: Time) {
        self.charge(Spent::Working, None);
        let cpu = self.cpu();
        cpu.clock += time;
        cpu.times.spinning += time;
        self.charge(Spent::Spinning, None);
        self.directory.charge_spin(self.running, time);
    }

    /// Puts the running CPU to sleep on what it has read; if that can not be, lets some
    /// time pass. Whether it sleeps.
    fn fall_asleep(&mut self, round: u32) -> bool {
        let (cpu, now) = (self.running, self.cpu().clock);
        let pause = self.profile.core.pause;
        if !self.directory.spinners.can_sleep(cpu) {
            self.directory.spinners.forget(cpu);
            self.spin(pause << round.min(6));
            return false;
        }
        let looks = self.directory.sleep(cpu, now);
        let patience = PATIENCE << self.cpu().vain.min(MOST_DOUBLINGS);
        self.cpu().doing = Doing::Spinning;
        let until = looks.unwrap_or(now + patience * pause);
        self.agenda.set(cpu, until);
        true
    }

    /// Blocks the running CPU's task if it has no permit; whether it had none.
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

    /// Takes the running CPU's task from it until `end`; then it has to be woken.
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
            let blocked = target.clock;
            let now = self.cpu().clock;
            self.schedule(index, blocked.max(now) + self.profile.kernel.wake);
        } else {
            target.permit = true;
        }
    }
}
