//! A task's words.

use crate::Policy;
use crate::state::State;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use machine::{Atomic, Contexts, Job, Ordering, SharedCell, TaskName};

/// The bits of a [`TaskName`] that number the task's place; the others are its generation.
pub(crate) const INDEX_BITS: u32 = 24;

/// A place for a task, used again when the task has ended. Lives as long as the scheduler.
#[repr(align(64))]
pub struct Task<M: Contexts, P: Policy<M>> {
    /// Written by the task itself, its wakers, and the CPU that it leaves.
    pub(crate) state: State<M>,
    /// The number of the place.
    index: u32,
    /// The CPU that runs the task, or ran it last. Written by that CPU; others read hints.
    cpu: M::AtomicU32,
    /// Written when the task is made; read by the CPU that switches to it.
    pub(crate) context: M::Cell<Option<M::Context>>,
    /// What the task does. Written by its maker before the task is handed over, taken by the task.
    pub(crate) job: M::Cell<Option<Job>>,
    /// When the task became ready; written by the CPU that hands it to the policy, read by the CPU
    /// that gets it.
    pub(crate) ready_since: M::Cell<u64>,
    /// The next free place, in a list of free ones; owned by that list.
    pub(crate) next_free: M::Cell<Option<TaskRef<M, P>>>,
    entry: P::Entry,
}

impl<M: Contexts, P: Policy<M>> Task<M, P> {
    /// A free place.
    pub(crate) fn new(index: u32) -> Self {
        Task {
            state: State::new(),
            index,
            cpu: M::AtomicU32::new(0),
            context: M::Cell::new(None),
            job: M::Cell::new(None),
            ready_since: M::Cell::new(0),
            next_free: M::Cell::new(None),
            entry: P::entry(),
        }
    }

    /// The policy's words.
    #[inline]
    pub fn entry(&self) -> &P::Entry {
        &self.entry
    }

    /// The CPU that runs the task, or ran it last; for a new task, the one that made it.
    #[inline]
    pub fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed) as usize
    }

    /// The number of the task's place: no other living task has it.
    #[inline]
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Records that the task is on `cpu`. Returns true if it was there before.
    pub(crate) fn set_cpu(&self, cpu: usize) -> bool {
        let same = self.cpu() == cpu;
        if !same {
            self.cpu.store(cpu as u32, Ordering::Relaxed);
        }
        same
    }

    /// The task's name. The caller keeps the task from ending.
    pub(crate) fn name(&self) -> TaskName {
        TaskName(self.state.generation() << INDEX_BITS | u64::from(self.index))
    }
}

/// A reference to a task's place: valid as long as the scheduler, though the task may end.
pub struct TaskRef<M: Contexts, P: Policy<M>> {
    place: NonNull<Task<M, P>>,
    shared: PhantomData<fn(&Task<M, P>)>,
}

impl<M: Contexts, P: Policy<M>> TaskRef<M, P> {
    /// # Safety
    /// The reference is not used after the scheduler that owns the place is dropped.
    pub(crate) unsafe fn new(place: NonNull<Task<M, P>>) -> Self {
        TaskRef {
            place,
            shared: PhantomData,
        }
    }
}

impl<M: Contexts, P: Policy<M>> Deref for TaskRef<M, P> {
    type Target = Task<M, P>;
    #[inline]
    fn deref(&self) -> &Task<M, P> {
        // SAFETY: places are freed with the scheduler, and by `new`'s contract this is not used
        // then.
        unsafe { self.place.as_ref() }
    }
}

impl<M: Contexts, P: Policy<M>> Clone for TaskRef<M, P> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Contexts, P: Policy<M>> Copy for TaskRef<M, P> {}

impl<M: Contexts, P: Policy<M>> PartialEq for TaskRef<M, P> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<M: Contexts, P: Policy<M>> Eq for TaskRef<M, P> {}

// SAFETY: a task is shared between CPUs; its fields say which of them may touch them.
unsafe impl<M: Contexts, P: Policy<M>> Send for TaskRef<M, P> {}
// SAFETY: each field says which CPU may touch it, also through a shared reference.
unsafe impl<M: Contexts, P: Policy<M>> Sync for TaskRef<M, P> {}
