//! Interrupts of a machine with a scheduler: timers, kicks, and jobs that arrive from outside.
//!
//! They are delivered at safe points, which include the task's own computing, and never while the
//! task holds a pin. An interrupt wakes a CPU that is idle or computes for a while; any other CPU
//! finds it at its next safe point.

use super::agenda::NEVER;
use super::cpu::Doing;
use super::{Engine, Running, Time, in_turn};
use machine::{Job, Scheduler};
use std::collections::VecDeque;
use std::sync::Arc;

/// A task that has spun for this long after an interrupt may wait for a task that this CPU should
/// run.
const OVERDUE: Time = 50_000_000_000;

/// Interrupts and jobs that a CPU has not been told of yet.
#[derive(Default)]
pub(crate) struct Inbox {
    /// When the timer goes off.
    timer: Option<Time>,
    kick: Option<Time>,
    /// The time since which the CPU itself wants its scheduler to be asked. No interrupt comes for
    /// that.
    own: Option<Time>,
    jobs: VecDeque<(Time, Job)>,
}

impl Inbox {
    /// When the first interrupt comes; [`NEVER`] if none does.
    #[inline]
    fn first(&self) -> Time {
        let job = self.jobs.front().map(|(time, _)| *time);
        let all = [self.timer, self.kick, self.own, job];
        all.into_iter().flatten().min().unwrap_or(NEVER)
    }

    /// Returns true if by `now` there is only the CPU's own request.
    fn is_only_own(&self, now: Time) -> bool {
        let job = self.jobs.front().map(|(time, _)| *time);
        let all = [self.timer, self.kick, job];
        self.own.is_some() && all.into_iter().flatten().all(|time| time > now)
    }

    /// Takes what has come by `now`; returns the jobs.
    fn take(&mut self, now: Time) -> Vec<Job> {
        self.own = None;
        self.timer = self.timer.filter(|&time| time > now);
        self.kick = self.kick.filter(|&time| time > now);
        let come = self.jobs.iter().take_while(|(time, _)| *time <= now);
        let come = come.count();
        self.jobs.drain(..come).map(|(_, job)| job).collect()
    }
}

/// Delivers the interrupts that have come, if the calling task may be taken off its CPU now.
#[inline]
pub(crate) fn safe_point() {
    if let Some(running) = Running::current()
        && running.with(|engine| engine.is_interrupted(0))
    {
        running.deliver();
    }
}

/// Takes an interrupt during a spin, if the interrupt has waited for long.
pub(super) fn overdue(running: Running) {
    if running.with(|engine| engine.is_interrupted(OVERDUE)) {
        running.deliver();
    }
}

/// Returns true if the calling CPU has an interrupt.
pub(crate) fn is_wanted() -> bool {
    Running::current().is_some_and(|running| running.with(|engine| engine.has_interrupt()))
}

/// Sets the calling CPU's timer to `time`.
pub(crate) fn set_timer(time: Time) {
    if let Some(running) = Running::current() {
        let timer = (time < NEVER).then_some(time);
        running.with(|engine| engine.cpu().inbox.timer = timer);
    }
}

/// Interrupts CPU `target`. If that is the calling CPU, only notes it, as kernels do
/// (`need_resched`): its scheduler is asked at the next safe point, and no interrupt is sent or
/// taken.
pub(crate) fn kick(target: usize) {
    let Some(running) = Running::current() else {
        return;
    };
    if running.with(|engine| engine.kicks_itself(target)) {
        return;
    }
    if let Some(running) = in_turn() {
        running.with(|engine| {
            let (send, deliver) = (engine.profile.ipi.send, engine.profile.ipi.deliver);
            engine.spend(send);
            let comes = engine.cpu().clock + deliver;
            let kick = &mut engine.cpus[target].inbox.kick;
            *kick = Some(kick.map_or(comes, |other| other.min(comes)));
            engine.poke(target, comes);
        });
    }
}

/// Waits until the calling CPU has an interrupt.
pub(crate) fn wait_for_interrupt() {
    let Some(running) = in_turn() else { return };
    while !running.with(|engine| engine.has_interrupt()) {
        running.with(Engine::fall_idle);
        running.wait(None);
        running.with(|engine| {
            engine.change_speeds();
            engine.spend(engine.profile.kernel.idle_exit);
        });
    }
}

impl Running {
    /// The machine's scheduler, if it has one.
    pub(crate) fn scheduler(self) -> Option<&'static dyn Scheduler> {
        let scheduler = self.with(|engine| engine.scheduler.as_ref().map(Arc::as_ptr))?;
        // SAFETY: the scheduler stays while the machine exists, which outlives the code on its
        // CPUs, and no other code calls this.
        Some(unsafe { &*scheduler })
    }

    #[cold]
    pub(super) fn deliver(self) {
        let Some(scheduler) = self.scheduler() else {
            return;
        };
        let jobs = self.with(|engine| {
            let now = engine.cpu().clock;
            if !engine.cpu().inbox.is_only_own(now) {
                engine.spend(engine.profile.ipi.handler);
            }
            let now = engine.cpu().clock;
            engine.cpu().inbox.take(now)
        });
        jobs.into_iter().for_each(|job| scheduler.start(job));
        scheduler.interrupt();
    }

    /// Lets the task compute for `time`; it can be interrupted.
    pub(super) fn compute(self, time: Time) {
        let mut left = self.with(|engine| engine.pay(time));
        loop {
            safe_point();
            let (begun, end, slowness) = self.with(|engine| engine.fall_busy(left));
            self.wait(None);
            let now = self.with(|engine| engine.cpu().clock);
            left = left.saturating_sub(((now - begun) << 10) / slowness);
            if now >= end || left == 0 {
                return;
            }
        }
    }
}

impl Engine {
    /// Returns true if `target` is the calling CPU, whose own scheduler is then to be asked.
    fn kicks_itself(&mut self, target: usize) -> bool {
        let itself = target == self.running;
        if itself {
            let now = self.cpu().clock;
            self.cpu().inbox.own.get_or_insert(now);
        }
        itself
    }

    fn has_interrupt(&self) -> bool {
        let cpu = &self.cpus[self.running];
        cpu.inbox.first() <= cpu.clock
    }

    /// Returns true if the running CPU has had an interrupt for `ago`, and its task holds no pin.
    #[inline]
    fn is_interrupted(&mut self, ago: Time) -> bool {
        let cpu = &self.cpus[self.running];
        self.scheduler.is_some()
            && self.contexts[self.current].pins == 0
            && cpu.inbox.first().saturating_add(ago) <= cpu.clock
    }

    /// Lets the running task compute for `time`, if no interrupt can come meanwhile. Returns true
    /// if it did.
    pub(super) fn computes_at_once(&mut self, time: Time) -> bool {
        if self.scheduler.is_some() && self.contexts[self.current].pins == 0 {
            let cpu = &self.cpus[self.running];
            let cost = (time * cpu.slowness) >> 10;
            let end = cpu.clock + cost.saturating_sub(cpu.credit);
            let others = self.agenda.next().map_or(NEVER, |(time, _)| time);
            let kick = others.saturating_add(self.profile.ipi.deliver);
            if end >= kick.min(cpu.inbox.first()) {
                return false;
            }
        }
        self.spend(time);
        true
    }

    /// Lets the running CPU compute for `time`, or until an interrupt comes. Returns when it
    /// begins, when it would end, and its slowness.
    fn fall_busy(&mut self, time: Time) -> (Time, Time, u64) {
        let index = self.running;
        let cpu = &mut self.cpus[index];
        let (begun, slowness) = (cpu.clock, cpu.slowness);
        let end = begun + ((time * slowness) >> 10);
        cpu.doing = Doing::Busy;
        let wakes = end.min(cpu.inbox.first().max(begun));
        self.agenda.set(index, wakes);
        (begun, end, slowness)
    }

    fn fall_idle(&mut self) {
        let index = self.running;
        let cpu = &mut self.cpus[index];
        cpu.doing = Doing::Idle;
        let wakes = cpu.inbox.first();
        self.agenda.set(index, wakes);
        self.change_speeds();
    }

    /// Wakes `cpu` at `time` for an interrupt, if it would not look by then.
    fn poke(&mut self, cpu: usize, time: Time) {
        let it = &self.cpus[cpu];
        let time = time.max(it.clock);
        if matches!(it.doing, Doing::Idle | Doing::Busy) && time < self.agenda.of(cpu) {
            self.schedule(cpu, time);
        }
    }

    /// Delivers a job for the scheduler to `cpu` at `time`.
    pub(crate) fn arrive(&mut self, cpu: usize, time: Time, job: Job) {
        let jobs = &mut self.cpus[cpu].inbox.jobs;
        let place = jobs.partition_point(|(other, _)| *other <= time);
        jobs.insert(place, (time, job));
        self.poke(cpu, time);
    }

    /// Returns true if no task is left: all CPUs are idle, and no job is on its way.
    pub(super) fn is_over(&self) -> bool {
        // Called each time a CPU has run, so the cheapest test comes first.
        self.scheduler.is_some() && self.tasks() == 0 && {
            let rests = |cpu: &super::Cpu| cpu.doing == Doing::Idle && cpu.inbox.jobs.is_empty();
            self.cpus.iter().all(rests)
        }
    }
}
