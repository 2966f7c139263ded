//! Which CPU a task goes to (`select_task_rq_fair`).
//!
//! Linux knows domains of CPUs that share caches, sockets and nodes. The machine's CPUs are one
//! domain that shares a cache (`SD_SHARE_PKG_RESOURCES`), so a search looks at all of them.

use super::fair::is_affine;
use super::{Cfs, Task};
use machine::Contexts;

impl<M: Contexts> Cfs<M> {
    /// The CPU for a task that CPU `here` wakes: the waker's or the task's last one, or an idle CPU
    /// if there is one.
    pub(super) fn select(&self, task: Task<M>, here: usize) -> usize {
        let last = task.entry().cpu();
        let load = |cpu: usize| self.rqs[cpu].running();
        let affine = here == last || is_affine(load(here), load(last));
        self.idle_sibling(if affine { here } else { last })
    }

    /// `target` if it is idle, else the first CPU that is, else `target` (`select_idle_sibling`).
    fn idle_sibling(&self, target: usize) -> usize {
        if self.rqs[target].is_idle() {
            return target;
        }
        let idle = self.rqs.iter().position(|rq| rq.is_idle());
        idle.unwrap_or(target)
    }

    /// The CPU for a new task made on CPU `here` (`find_idlest_group`, `find_idlest_cpu`): the next
    /// one with the fewest tasks, or `here` if that has hardly more.
    pub(super) fn select_fork(&self, here: usize) -> usize {
        let load = |&cpu: &usize| self.rqs[cpu].running();
        let cpus = self.rqs.len();
        let others = (1..cpus).map(|further| (here + further) % cpus);
        match others.min_by_key(load) {
            Some(idlest) if 100 * load(&here) >= 112 * load(&idlest) => idlest,
            _ => here,
        }
    }
}
