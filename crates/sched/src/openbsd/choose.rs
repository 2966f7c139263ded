//! Which CPU a task goes to, and which task a CPU takes from another one (sys/kern/kern_sched.c).
//!
//! All functions are called under `SCHED_LOCK`.

use super::priority::FSHIFT;
use super::{OpenBsd, Task};
use machine::{Atomic, Contexts, Ordering};

/// `sched_cost_load`: the cost of a unit of load average.
const LOAD: i64 = 1;
/// `sched_cost_priority`: the cost of a unit by which the current task's priority is better.
const PRIORITY: i64 = 1;
/// `sched_cost_runnable`: the cost of a task that runs there or is queued; the primary CPU counts
/// as one, for interrupts.
const RUNNABLE: i64 = 3;
/// `sched_cost_resident`: deducted if the task was there before, log2 of its pages. The scheduler
/// knows nothing of pages: each task has 256.
const RESIDENT: i64 = 8;

/// The properties of a CPU that determine the cost for a task to go there.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The priority of the current task, if there is one.
    current: Option<u32>,
    queued: u32,
    load: u64,
    primary: bool,
    /// True if the task was here, and has not slept for a second.
    resident: bool,
}

/// The cost for a task of this priority to go there (`sched_proc_to_cpu_cost`).
fn cost(priority: u32, place: Place) -> i64 {
    let mut cost = i64::from(place.queued) * RUNNABLE;
    if let Some(current) = place.current {
        cost += (i64::from(priority) - i64::from(current)) * PRIORITY + RUNNABLE;
    }
    if place.primary {
        cost += RUNNABLE;
    }
    cost += (LOAD * place.load as i64) >> FSHIFT;
    if place.resident {
        cost -= RESIDENT;
    }
    cost
}

impl<M: Contexts> OpenBsd<M> {
    fn cost(&self, task: Task<M>, cpu: usize) -> i64 {
        let there = &self.cpus[cpu];
        let busy = !self.idle_cpus.contains(cpu);
        let place = Place {
            current: busy.then(|| there.priority.load(Ordering::Relaxed)),
            queued: if self.queued_cpus.contains(cpu) {
                there.queued()
            } else {
                0
            },
            load: there.load.load(Ordering::Relaxed),
            primary: cpu == 0,
            resident: task.entry().cpu() == cpu && !self.slept_long(task),
        };
        cost(task.entry().user_priority(), place)
    }

    /// The CPU for a woken task (`sched_choosecpu`): its last one if that is idle, else the
    /// cheapest idle one, else the cheapest of all.
    pub(super) fn choose_cpu(&self, task: Task<M>) -> usize {
        let before = task.entry().cpu();
        if self.idle_cpus.contains(before) && !self.queued_cpus.contains(before) {
            return before;
        }
        let idle = self.idle_cpus.without(&self.queued_cpus);
        idle.min_by_key(|&cpu| self.cost(task, cpu))
            .or_else(|| (0..self.cpus.len()).min_by_key(|&cpu| self.cost(task, cpu)))
            .unwrap_or(before)
    }

    /// The CPU for a new task (`sched_choosecpu_fork`): an idle one, else one with few tasks.
    pub(super) fn choose_cpu_fork(&self) -> usize {
        let crowd = |&cpu: &usize| {
            let there = &self.cpus[cpu];
            (there.queued(), there.load.load(Ordering::Relaxed))
        };
        let idle = self.idle_cpus.without(&self.queued_cpus);
        idle.min_by_key(crowd)
            .or_else(|| (0..self.cpus.len()).min_by_key(crowd))
            .unwrap_or(0)
    }

    /// The cheapest of the best queued tasks of all CPUs, taken out of its queue
    /// (`sched_steal_proc`).
    pub(super) fn steal(&self, cpu: usize) -> Option<Task<M>> {
        let best = self.queued_cpus.iter().flat_map(|other| {
            let other = &self.cpus[other];
            let best = other.best();
            best.into_iter().flat_map(|queue| other.tasks(queue))
        });
        let stolen = best.min_by_key(|&task| self.cost(task, cpu))?;
        self.remove(stolen);
        Some(stolen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: Place = Place {
        current: None,
        queued: 0,
        load: 0,
        primary: false,
        resident: false,
    };

    #[test]
    fn each_piece_costs_what_it_should() {
        assert_eq!(cost(50, EMPTY), 0);
        let with = |change: fn(&mut Place)| {
            let mut place = EMPTY;
            change(&mut place);
            cost(50, place)
        };
        assert_eq!(with(|place| place.primary = true), 3);
        assert_eq!(with(|place| place.queued = 2), 6);
        assert_eq!(with(|place| place.load = 2 << FSHIFT), 2);
        assert_eq!(with(|place| place.resident = true), -8);
        // A CPU with a hog attracts a task with a better priority.
        assert_eq!(with(|place| place.current = Some(50)), 3);
        assert_eq!(with(|place| place.current = Some(86)), 3 - 36);
    }
}
