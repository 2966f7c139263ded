//! The queue of ready tasks of one CPU.

use super::idle::Waiting;
use super::{Best, Bounds, GRAIN, SLICE};
use crate::heap::Heap;
use crate::{Leaving, TaskRef};
use machine::{Atomic, Contexts, Ordering};
use sync::spin::Ticket;
use sync::{Mutex, MutexGuard, Padded};

/// The floor at first: no virtual time gets below 0.
const FIRST_FLOOR: u64 = 1 << 40;

/// `started` while the CPU runs no task.
const NOTHING: u64 = u64::MAX;

/// A task of this policy.
type BestTask<M, B> = TaskRef<M, Best<M, B>>;

/// The queue, and the state of its CPU's task.
///
/// Words outside the mutex are written by its holder only, and read by others as a hint. While a
/// task that sleeps and wakes has the CPU to itself, `crowded` does not change, so the CPUs that
/// read it in search of work cost that CPU no cache misses.
pub(super) struct Queue<M: Contexts, B: Bounds> {
    ready: Mutex<M, Ticket<M>, Ready<M, B>>,
    /// The number of tasks in the heap, or on their way back into it.
    waiting: Waiting<M>,
    /// 1 if the CPU runs a task and others wait: it has a tick, and others may take one.
    crowded: Padded<M::AtomicU32>,
    /// When the CPU's task began to run, or [`NOTHING`]. Written by the CPU, so it may read it
    /// without the mutex.
    started: M::AtomicU64,
    /// The virtual time at which the CPU's task began to run. Written by the CPU.
    began: M::AtomicU64,
}

/// The tasks that wait, by their virtual times.
struct Ready<M: Contexts, B: Bounds> {
    heap: Heap<M, BestTask<M, B>>,
    /// The least virtual time that the tasks here had at some moment. It never falls.
    floor: u64,
    /// No task in the heap has more virtual time.
    most: u64,
}

/// Where a pushed task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The caller is on another CPU.
    Elsewhere,
    /// The caller is on the CPU.
    Here,
    /// The queue's CPU has just run it. It counts as waiting since [`Queue::next`], so that other
    /// CPUs do not see one task too few in the meantime.
    Back,
}

/// How the queue's CPU learns of a task that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The CPU will look at its queue by itself.
    Looks,
    /// The CPU must be interrupted.
    Interrupt,
    /// The CPU must be interrupted if its flag says that it is idle.
    MayBeIdle,
}

type Guard<'a, M, B> = MutexGuard<'a, M, Ticket<M>, Ready<M, B>>;

impl<M: Contexts, B: Bounds> Queue<M, B> {
    pub(super) fn new() -> Self {
        Queue {
            ready: Mutex::new(Ready {
                heap: Heap::new(),
                floor: FIRST_FLOOR,
                most: 0,
            }),
            waiting: Waiting::new(),
            crowded: Padded(M::AtomicU32::new(0)),
            started: M::AtomicU64::new(NOTHING),
            began: M::AtomicU64::new(0),
        }
    }

    /// The number of tasks that waited here a moment ago.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.waiting.get()
    }

    /// Returns true if a moment ago the CPU ran a task and others waited.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed) != 0
    }

    /// Sets `crowded`. Returns true if it was set before.
    fn set_crowded(&self, _ready: &Guard<'_, M, B>, crowded: bool) -> bool {
        let was = self.is_crowded();
        if was != crowded {
            self.crowded.store(u32::from(crowded), Ordering::Relaxed);
        }
        was
    }

    /// Returns true if the calling CPU has nothing to run. The queue is the calling CPU's.
    pub(super) fn is_free(&self) -> bool {
        self.started.load(Ordering::Relaxed) == NOTHING && self.waiting() == 0
    }

    /// The virtual time of the task that the CPU runs; `None` if it runs none.
    fn running(&self, now: u64) -> Option<u64> {
        let started = self.started.load(Ordering::Relaxed);
        let ran = now.saturating_sub(started);
        (started != NOTHING).then(|| self.began.load(Ordering::Relaxed) + ran)
    }

    /// Raises the floor to the least virtual time of the tasks here.
    fn raise_floor(&self, ready: &mut Guard<'_, M, B>, now: u64) {
        let least = ready.heap.first_key();
        let least = least.min(self.running(now).unwrap_or(u64::MAX));
        if least != u64::MAX {
            ready.floor = ready.floor.max(least);
        }
    }

    /// How far the calling CPU's task is above the floor. The queue is the calling CPU's.
    pub(super) fn lag(&self, now: u64) -> i64 {
        let mut ready = self.ready.lock();
        self.raise_floor(&mut ready, now);
        let running = self.running(now);
        running.map_or(0, |time| time as i64 - ready.floor as i64)
    }

    /// Adds a task with a virtual time `lag` above the floor.
    pub(super) fn push(&self, task: BestTask<M, B>, lag: i64, now: u64, from: Origin) -> Owner {
        let mut ready = self.ready.lock();
        self.raise_floor(&mut ready, now);
        let time = ready.floor.saturating_add_signed(lag);
        let alone = ready.heap.is_empty();
        ready.most = if alone { time } else { ready.most.max(time) };
        // SAFETY: the caller owns the task, so it is in no queue; from now on the mutex guards it.
        unsafe { ready.heap.push(&task.entry().node, time, task) };
        let Some(running) = self.running(now) else {
            if from == Origin::Here {
                self.waiting.add();
                return Owner::Looks;
            }
            self.waiting.announce();
            return Owner::MayBeIdle;
        };
        if from != Origin::Back {
            self.waiting.add();
        }
        let has_tick = self.set_crowded(&ready, true) || from != Origin::Elsewhere;
        if has_tick && running <= time.saturating_add(GRAIN) {
            return Owner::Looks;
        }
        Owner::Interrupt
    }

    /// Chooses the task with which the calling CPU, the queue's own, continues, and records the
    /// account of the current one, if that does not go on.
    pub(super) fn next(
        &self,
        current: Option<(BestTask<M, B>, Leaving)>,
        now: u64,
    ) -> Option<BestTask<M, B>> {
        let mut ready = self.ready.lock();
        self.raise_floor(&mut ready, now);
        let running = self.running(now);
        let first = ready.heap.first_key();
        match (current, running) {
            (Some((_, Leaving::Yields)), _) if ready.heap.is_empty() => return None,
            (Some((_, Leaving::Preempted)), Some(time)) if first >= time => return None,
            (Some((task, leaving)), Some(mut time)) => {
                if leaving == Leaving::Yields {
                    // A task that yields goes behind all that wait.
                    time = time.max(ready.most + 1);
                }
                let lag = time as i64 - ready.floor as i64;
                task.entry().set_account(lag, now);
            }
            _ => {}
        }
        let (time, task) = self.pop(&mut ready, |_| true).unzip();
        if current.is_some_and(|(_, leaving)| leaving.stays_ready()) {
            self.waiting.add();
        }
        self.run(&ready, time, now);
        task
    }

    /// The calling CPU continues with a task from another queue, `lag` above the floor.
    pub(super) fn adopt(&self, lag: i64, now: u64) {
        let ready = self.ready.lock();
        self.run(&ready, Some(ready.floor.saturating_add_signed(lag)), now);
    }

    /// Takes a waiting task that may run on `other`, a CPU that is not the queue's, and returns it
    /// with its lag; `None` if there is none, or the mutex is held.
    pub(super) fn take(&self, other: usize) -> Option<(BestTask<M, B>, i64)> {
        let mut ready = self.ready.try_lock()?;
        let (time, task) = self.pop(&mut ready, |task| task.entry().may_run(other))?;
        Some((task, time as i64 - ready.floor as i64))
    }

    /// Returns true if one of the waiting tasks may run on `other`. The caller has seen that some
    /// wait.
    pub(super) fn has_for(&self, other: usize) -> bool {
        B::NONE || self.has_within(other)
    }

    fn has_within(&self, other: usize) -> bool {
        let mut ready = self.ready.lock();
        let found = ready.heap.pop_if(|task| task.entry().may_run(other));
        let Some((time, task)) = found else {
            return false;
        };
        // SAFETY: it has just been popped, under the mutex.
        unsafe { ready.heap.push(&task.entry().node, time, task) };
        true
    }

    /// Removes the first task that may run on the given CPU.
    fn pop(
        &self,
        ready: &mut Guard<'_, M, B>,
        suits: impl Fn(BestTask<M, B>) -> bool,
    ) -> Option<(u64, BestTask<M, B>)> {
        let popped = ready.heap.pop_if(suits)?;
        self.waiting.remove();
        if ready.heap.is_empty() {
            self.set_crowded(ready, false);
        }
        Some(popped)
    }

    /// The calling CPU continues with a task of this virtual time, or with none.
    fn run(&self, ready: &Guard<'_, M, B>, time: Option<u64>, now: u64) {
        self.set_crowded(ready, time.is_some() && !ready.heap.is_empty());
        self.began.store(time.unwrap_or(0), Ordering::Relaxed);
        let started = if time.is_some() { now } else { NOTHING };
        self.started.store(started, Ordering::Relaxed);
    }

    /// Returns true if the calling CPU's task has to be preempted.
    pub(super) fn should_preempt(&self, now: u64) -> bool {
        let Some(running) = self.running(now) else {
            return false;
        };
        let first = self.ready.lock().heap.first_key();
        let over = now.saturating_sub(self.started.load(Ordering::Relaxed)) >= SLICE;
        running > first.saturating_add(if over { 0 } else { GRAIN })
    }

    /// When the calling CPU needs its next tick.
    pub(super) fn deadline(&self, now: u64) -> u64 {
        if !self.is_crowded() {
            return u64::MAX;
        }
        let end = self.started.load(Ordering::Relaxed).saturating_add(SLICE);
        if end > now { end } else { now + GRAIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::best::Unbound;
    use sim::Sim;

    const _: () = assert!(size_of::<Queue<Sim, Unbound>>() == 256);
}
