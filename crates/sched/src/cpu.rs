//! The data of one CPU, accessed only there, while pinned.

use crate::heap::Heap;
use crate::table::FreeList;
use crate::{Leaving, Policy, TaskRef};
use machine::{Contexts, SharedCell};

/// The scheduler's data of one CPU.
pub(crate) struct Cpu<M: Contexts, P: Policy<M>> {
    local: M::Cell<Local<M, P>>,
    /// The tasks that went to sleep here, by the time at which they wake.
    sleepers: M::Cell<Heap<M, TaskRef<M, P>>>,
    /// Places for new tasks.
    free: M::Cell<FreeList<M, P>>,
}

/// The words used at each switch.
pub(crate) struct Local<M: Contexts, P: Policy<M>> {
    /// The task that the CPU runs; `None` in the idle context.
    pub(crate) current: Option<TaskRef<M, P>>,
    /// During a switch: the task that leaves the CPU, and why.
    pub(crate) previous: Option<(TaskRef<M, P>, Leaving)>,
    /// The task that the CPU ran last, or runs.
    pub(crate) last: Option<TaskRef<M, P>>,
    /// The context in which [`machine::Scheduler::run`] was called.
    pub(crate) idle: Option<M::Context>,
    /// The timer goes off no later than this.
    pub(crate) timer: u64,
}

impl<M: Contexts, P: Policy<M>> Cpu<M, P> {
    pub(crate) fn new() -> Self {
        Cpu {
            local: M::Cell::new(Local {
                current: None,
                previous: None,
                last: None,
                idle: None,
                timer: u64::MAX,
            }),
            sleepers: M::Cell::new(Heap::new()),
            free: M::Cell::new(FreeList::new()),
        }
    }

    /// The task that the CPU runs.
    #[inline]
    pub(crate) fn current(&self, _pin: &M::Pin) -> Option<TaskRef<M, P>> {
        // SAFETY: pinned, so no other task writes it meanwhile.
        unsafe { (*self.local.read()).current }
    }

    /// Changes the CPU's words. `f` does nothing else.
    #[inline]
    pub(crate) fn local<R>(&self, _pin: &M::Pin, f: impl FnOnce(&mut Local<M, P>) -> R) -> R {
        // SAFETY: pinned, and `f` does not call this again.
        f(unsafe { &mut *self.local.write() })
    }

    /// When the first sleeper wakes.
    #[inline]
    pub(crate) fn first_sleeper(&self, _pin: &M::Pin) -> u64 {
        // SAFETY: pinned, so no other task writes it meanwhile.
        unsafe { (*self.sleepers.read()).first_key() }
    }

    /// Changes the queue of sleepers. `f` does nothing else.
    pub(crate) fn sleepers<R>(
        &self,
        _pin: &M::Pin,
        f: impl FnOnce(&mut Heap<M, TaskRef<M, P>>) -> R,
    ) -> R {
        // SAFETY: pinned, and `f` does not call this again.
        f(unsafe { &mut *self.sleepers.write() })
    }

    /// Changes the list of free places. `f` does nothing else.
    pub(crate) fn free<R>(&self, _pin: &M::Pin, f: impl FnOnce(&mut FreeList<M, P>) -> R) -> R {
        // SAFETY: pinned, and `f` does not call this again.
        f(unsafe { &mut *self.free.write() })
    }
}
