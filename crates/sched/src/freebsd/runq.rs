//! Run queues of 64 lists (`struct runq`, sys/kern/kern_switch.c), and the two queues of a CPU.
//!
//! The *real-time* queue takes tasks of interactive and better priorities, four priorities to a
//! list. The *time-sharing* queue is a calendar: its lists form a circle, a task is put at a
//! distance from the *insert index* that depends on its priority, and tasks are taken from the
//! *removal index* on. The insert index advances by one list per tick while the two are equal, the
//! removal index when its list is empty; so every task's turn comes.

use super::interact::{BATCH_RANGE, MIN_BATCH};
use super::{Task, Ule};
use crate::queue::Queue;
use machine::{Atomic, Contexts, Ordering};

/// Lists of a queue (`RQ_NQS`).
const LISTS: usize = 64;
/// Priorities to a list of the real-time queue (`RQ_PPQ`).
const PPQ: u32 = 4;

/// A queue of 64 lists, guarded by the CPU's lock.
struct RunQueue<M: Contexts> {
    /// `rq_status`: the lists with tasks.
    status: M::AtomicU64,
    lists: [Queue<M, Ule<M>>; LISTS],
}

impl<M: Contexts> RunQueue<M> {
    fn new() -> Self {
        RunQueue {
            status: M::AtomicU64::new(0),
            lists: core::array::from_fn(|_| Queue::new()),
        }
    }

    /// The number of empty lists from `start` on, in a circle, before the first with a task.
    fn distance(&self, start: usize) -> Option<usize> {
        let status = self
            .status
            .load(Ordering::Relaxed)
            .rotate_right(start as u32);
        (status != 0).then(|| status.trailing_zeros() as usize)
    }

    fn add(&self, task: Task<M>, list: usize, first: bool) {
        if first {
            self.lists[list].push_first(task);
        } else {
            self.lists[list].push_last(task);
        }
        let status = self.status.load(Ordering::Relaxed);
        self.status.store(status | 1 << list, Ordering::Relaxed);
    }

    /// Removes a task. Returns true if its list is now empty.
    fn remove(&self, task: Task<M>, list: usize) -> bool {
        self.lists[list].remove(task);
        let empty = self.lists[list].is_empty();
        if empty {
            let status = self.status.load(Ordering::Relaxed);
            self.status.store(status & !(1 << list), Ordering::Relaxed);
        }
        empty
    }

    /// The tasks from list `start` on, in a circle.
    fn tasks(&self, start: usize) -> impl Iterator<Item = Task<M>> {
        let status = self.status.load(Ordering::Relaxed);
        let lists = (0..LISTS).map(move |step| (start + step) % LISTS);
        lists
            .filter(move |list| status & 1 << list != 0)
            .flat_map(|list| self.lists[list].iter())
    }
}

/// A CPU's queues, guarded by its lock.
pub(super) struct RunQueues<M: Contexts> {
    /// `tdq_realtime`.
    realtime: RunQueue<M>,
    /// `tdq_timeshare`.
    timeshare: RunQueue<M>,
    /// `tdq_idx`: the insert index.
    insert: M::AtomicU32,
    /// `tdq_ridx`: the removal index.
    removal: M::AtomicU32,
}

/// A task's place in [`RunQueues`]: the number of its list. The lists of the time-sharing queue are
/// numbered after those of the real-time queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) u32);

impl Place {
    fn realtime(self) -> Option<usize> {
        let list = self.0 as usize;
        (list < LISTS).then_some(list)
    }

    fn list(self) -> usize {
        self.0 as usize % LISTS
    }
}

impl<M: Contexts> RunQueues<M> {
    pub(super) fn new() -> Self {
        RunQueues {
            realtime: RunQueue::new(),
            timeshare: RunQueue::new(),
            insert: M::AtomicU32::new(0),
            removal: M::AtomicU32::new(0),
        }
    }

    fn insert_index(&self) -> u32 {
        self.insert.load(Ordering::Relaxed)
    }

    fn removal_index(&self) -> u32 {
        self.removal.load(Ordering::Relaxed)
    }

    /// The place of a task of this priority; a `preempted` one gets the list that is served now
    /// (`tdq_runq_add`).
    pub(super) fn place(&self, priority: u32, preempted: bool) -> Place {
        let lists = LISTS as u32;
        if priority < MIN_BATCH {
            return Place(priority / PPQ);
        }
        let (insert, removal) = (self.insert_index(), self.removal_index());
        if preempted {
            return Place(lists + removal);
        }
        let list = (lists * (priority - MIN_BATCH) / BATCH_RANGE + insert) % lists;
        // While the indices differ, the list that is being emptied gets no new tasks.
        if removal != insert && list == removal {
            return Place(lists + (list + lists - 1) % lists);
        }
        Place(lists + list)
    }

    /// Adds a task at its place, at the head or the end.
    pub(super) fn add(&self, task: Task<M>, place: Place, first: bool) {
        match place.realtime() {
            Some(list) => self.realtime.add(task, list, first),
            None => self.timeshare.add(task, place.list(), first),
        }
    }

    /// Removes a task (`tdq_runq_rem`).
    pub(super) fn remove(&self, task: Task<M>, place: Place) {
        if let Some(list) = place.realtime() {
            self.realtime.remove(task, list);
            return;
        }
        let list = place.list();
        let (insert, removal) = (self.insert_index(), self.removal_index());
        if self.timeshare.remove(task, list) && insert != removal && list == removal as usize {
            self.removal
                .store((removal + 1) % LISTS as u32, Ordering::Relaxed);
        }
    }

    /// The next task (`tdq_choose`).
    pub(super) fn first(&self) -> Option<Task<M>> {
        let timeshare = || self.timeshare.tasks(self.removal_index() as usize).next();
        self.realtime.tasks(0).next().or_else(timeshare)
    }

    /// Returns true if a task at `place` would come before all others; if it goes to the head of
    /// its list (`at_head`), before the tasks there too.
    pub(super) fn would_be_first(&self, place: Place, at_head: bool) -> bool {
        let (own, others) = match (place.realtime(), self.realtime.distance(0)) {
            (None, Some(_)) => return false,
            (Some(own), others) => (own, others),
            (None, None) => {
                let start = self.removal_index() as usize;
                let own = (place.list() + LISTS - start) % LISTS;
                (own, self.timeshare.distance(start))
            }
        };
        others.is_none_or(|others| own < others || own == others && at_head)
    }

    /// The task that another CPU may steal (`tdq_steal`): from the time-sharing queue not the very
    /// first, if there is another one.
    pub(super) fn to_steal(&self) -> Option<Task<M>> {
        let first = self.realtime.tasks(0).next();
        first.or_else(|| {
            let mut tasks = self.timeshare.tasks(self.removal_index() as usize);
            let first = tasks.next()?;
            Some(tasks.next().unwrap_or(first))
        })
    }

    /// Advances the insert index at a tick, if it has not advanced yet (`sched_clock`).
    pub(super) fn tick(&self) {
        let (insert, removal) = (self.insert_index(), self.removal_index());
        if insert != removal {
            return;
        }
        let next = (insert + 1) % LISTS as u32;
        self.insert.store(next, Ordering::Relaxed);
        if self.timeshare.lists[removal as usize].is_empty() {
            self.removal.store(next, Ordering::Relaxed);
        }
    }
}
