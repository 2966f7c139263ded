//! The clocks: estimates grow, decay, and tasks of one priority take turns.

use super::priority::{QUEUES, charged, decayed, load_average, queue};
use super::{OpenBsd, Task};
use machine::{Atomic, Contexts, Ordering};

/// `hardclock`, and `statclock` too, which has no clock of its own on amd64: `hz` is 100.
pub(super) const TICK: u64 = 10_000_000;
/// Ticks between two calls of `roundrobin` (`rrticks_init`, `hz` / 10).
pub(super) const ROUND: u32 = 10;
/// Calls of `statclock` for each call of `schedclock`, as there is no `schedhz`.
const SCHEDCLOCK: u32 = 4;
/// Nanoseconds between two calls of `schedcpu`.
const SECOND: u64 = 1_000_000_000;
/// Seconds between two calls of `uvm_loadav`.
const LOADAV: u32 = 5;

impl<M: Contexts> OpenBsd<M> {
    /// Runs the clocks of `cpu`, which runs `current`. Returns true if others of the same priority
    /// are to have their turn.
    pub(super) fn clocks(&self, cpu: usize, current: Task<M>, now: u64) -> bool {
        let here = &self.cpus[cpu];
        let clock = &here.clock;
        let mut next = clock.next.load(Ordering::Relaxed);
        let mut turn = false;
        while next <= now {
            next += TICK;
            let ticks = clock.ticks.load(Ordering::Relaxed).wrapping_add(1);
            clock.ticks.store(ticks, Ordering::Relaxed);
            if ticks.is_multiple_of(SCHEDCLOCK) {
                self.charge(current);
            }
            turn |= self.round_robin(cpu);
        }
        clock.next.store(next, Ordering::Relaxed);
        turn
    }

    /// Charges the current task for its use of the CPU (`schedclock`).
    fn charge(&self, current: Task<M>) {
        let lock = self.lock;
        lock.lock();
        let entry = current.entry();
        entry.set_estcpu(charged(entry.estcpu()));
        lock.unlock();
    }

    /// Counts a tick and calls `roundrobin` after [`ROUND`] of them. Returns true if the current
    /// task is to be preempted.
    fn round_robin(&self, cpu: usize) -> bool {
        let here = &self.cpus[cpu];
        let left = here.clock.round.load(Ordering::Relaxed) - 1;
        let due = left == 0;
        here.clock
            .round
            .store(if due { ROUND } else { left }, Ordering::Relaxed);
        due && here.queued() > 0
    }

    /// Does the softclock's work of each second, on the CPU that first sees that it is due.
    pub(super) fn seconds(&self, now: u64) {
        let due = self.next_second.load(Ordering::Relaxed);
        if now < due {
            return;
        }
        let next = due.max(now / SECOND * SECOND) + SECOND;
        // Relaxed: one CPU wins, and its work is under locks of its own.
        let won =
            self.next_second
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        // Not the first time: that is when the scheduler starts.
        if won.is_err() || due == 0 {
            return;
        }
        let pass = self.passes.load(Ordering::Relaxed) + 1;
        self.passes.store(pass, Ordering::Relaxed);
        self.decay_all();
        if pass.is_multiple_of(LOADAV) {
            self.load_averages();
        }
    }

    /// `schedcpu`: decays the estimates of all tasks that are awake. Sleeping tasks catch up when
    /// they wake. This takes the lock once per CPU, OpenBSD once per task.
    fn decay_all(&self) {
        let load = self.load.load(Ordering::Relaxed);
        for cpu in &self.cpus {
            let lock = self.lock;
            lock.lock();
            if let Some(current) = cpu.current.get() {
                self.decay(current, load);
            }
            for number in 0..QUEUES {
                for task in cpu.tasks(number) {
                    if self.decay(task, load) {
                        self.requeue(task);
                    }
                }
            }
            lock.unlock();
        }
    }

    /// Decays a task's estimate, unless this second's pass has done so. Returns true if it did.
    fn decay(&self, task: Task<M>, load: u64) -> bool {
        let entry = task.entry();
        let pass = self.passes.load(Ordering::Relaxed);
        if entry.decayed.load(Ordering::Relaxed) == pass {
            return false;
        }
        entry.decayed.store(pass, Ordering::Relaxed);
        entry.set_estcpu(decayed(entry.estcpu(), load));
        true
    }

    /// Moves a queued task to the queue of its priority.
    fn requeue(&self, task: Task<M>) {
        let entry = task.entry();
        if queue(entry.queued_at()) != queue(entry.user_priority()) {
            self.remove(task);
            // A CPU that should preempt its task for this one learns so at its next tick.
            self.enqueue(entry.cpu(), task, entry.user_priority());
        }
    }

    /// Updates the load average of each CPU and of all (`uvm_loadav`).
    fn load_averages(&self) {
        let mut all = 0;
        for cpu in &self.cpus {
            let running = u32::from(cpu.current.get().is_some());
            let runnable = u64::from(cpu.queued() + running);
            let load = cpu.load.load(Ordering::Relaxed);
            cpu.load
                .store(load_average(load, runnable), Ordering::Relaxed);
            all += runnable;
        }
        let load = self.load.load(Ordering::Relaxed);
        self.load.store(load_average(load, all), Ordering::Relaxed);
    }
}
