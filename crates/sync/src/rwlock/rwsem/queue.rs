//! The queue of an [`super::Rwsem`]: readers and writers in the order in which they came.

use crate::effort::note_sleep;
use crate::raw::RawGuard;
use crate::spin::Qspinlock;
use core::ptr::{self, from_ref, null};
use machine::{Atomic, Machine, Ordering, SharedCell};

/// The most readers to which one wake-up grants the lock.
const BATCH: usize = 256;

/// The first and the last waiter; null if there is none. Guarded by the queue's lock.
pub(super) struct Queue<M: Machine> {
    first: *const Waiter<M>,
    last: *const Waiter<M>,
}

/// A waiting task's node: on its stack, on a cache line of its own.
#[repr(align(64))]
pub(super) struct Waiter<M: Machine> {
    pub(super) task: M::Task,
    pub(super) writes: bool,
    /// The task's name as an owner.
    pub(super) name: usize,
    /// The time after which the task asks for the lock to be handed to it.
    deadline: u64,
    /// Guarded by the queue's lock. Once a reader has been taken from the queue, its waker owns
    /// them.
    links: M::Cell<Links<M>>,
    /// 1 once a reader has been granted the lock. Its waker sets it, and then no longer accesses
    /// the waiter.
    granted: M::AtomicU32,
}

struct Links<M: Machine> {
    previous: *const Waiter<M>,
    next: *const Waiter<M>,
    /// True if `HANDOFF` is set for this waiter.
    is_handed: bool,
}

// SAFETY: followed only under the queue's lock or by the waker, and waiters stay in place until
// then.
unsafe impl<M: Machine> Send for Queue<M> {}
// SAFETY: followed only under the queue's lock or by the waker, and waiters stay in place until
// then.
unsafe impl<M: Machine> Send for Links<M> {}

impl<M: Machine> Queue<M> {
    pub(super) const fn new() -> Self {
        Queue {
            first: null(),
            last: null(),
        }
    }
}

impl<M: Machine> Waiter<M> {
    /// A waiter for the calling task, which is late after `patience` nanoseconds.
    pub(super) fn new(writes: bool, name: usize, patience: u64) -> Self {
        Waiter {
            task: M::current_task(),
            writes,
            name,
            deadline: M::now().saturating_add(patience),
            links: M::Cell::new(Links {
                previous: null(),
                next: null(),
                is_handed: false,
            }),
            granted: M::AtomicU32::new(0),
        }
    }

    /// Returns true if the task has waited for so long that the lock is to be handed to it.
    pub(super) fn is_late(&self) -> bool {
        M::now() > self.deadline
    }

    /// Sleeps until the lock is granted.
    pub(super) fn wait(&self) {
        // Acquire: pairs with the release in `Readers::next`, for what the last writer did.
        while self.granted.load(Ordering::Acquire) == 0 {
            note_sleep::<M>();
            M::park();
        }
    }
}

/// The locked queue.
pub(super) struct LockedQueue<'a, M: Machine> {
    queue: &'a M::Cell<Queue<M>>,
    _lock: RawGuard<'a, M, Qspinlock<M>>,
    _pin: M::Pin,
}

impl<'a, M: Machine> LockedQueue<'a, M> {
    pub(super) fn new(
        queue: &'a M::Cell<Queue<M>>,
        lock: RawGuard<'a, M, Qspinlock<M>>,
        pin: M::Pin,
    ) -> Self {
        LockedQueue {
            queue,
            _lock: lock,
            _pin: pin,
        }
    }

    fn ends(&self) -> (*const Waiter<M>, *const Waiter<M>) {
        // SAFETY: the queue is locked.
        let queue = unsafe { &*self.queue.read() };
        (queue.first, queue.last)
    }

    /// The first waiter.
    pub(super) fn first(&self) -> Option<&Waiter<M>> {
        // SAFETY: queued waiters stay in place.
        unsafe { self.ends().0.as_ref() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    pub(super) fn is_first(&self, waiter: &Waiter<M>) -> bool {
        ptr::eq(self.ends().0, waiter)
    }

    /// Returns true if the queue has one waiter.
    pub(super) fn is_single(&self) -> bool {
        let (first, last) = self.ends();
        !first.is_null() && ptr::eq(first, last)
    }

    /// Returns true if `HANDOFF` is set for `waiter`.
    pub(super) fn is_handed_to(&self, waiter: &Waiter<M>) -> bool {
        // SAFETY: the queue is locked.
        unsafe { (*waiter.links.read()).is_handed }
    }

    /// Returns true if `HANDOFF` is set for the first waiter.
    pub(super) fn is_first_handed(&self) -> bool {
        self.first().is_some_and(|first| self.is_handed_to(first))
    }

    /// Records that `HANDOFF` is set for the first waiter.
    pub(super) fn hand_to_first(&mut self) {
        if let Some(first) = self.first() {
            // SAFETY: the queue is locked.
            unsafe { (*first.links.write()).is_handed = true };
        }
    }

    /// Appends `waiter`.
    ///
    /// # Safety
    /// The waiter stays in place until it has been removed, and granted the lock if it reads.
    pub(super) unsafe fn push(&mut self, waiter: &Waiter<M>) {
        // SAFETY: the queue is locked, and queued waiters stay in place.
        unsafe {
            let queue = self.queue.write();
            (*waiter.links.write()).previous = (*queue).last;
            match (*queue).last.as_ref() {
                Some(last) => (*last.links.write()).next = waiter,
                None => (*queue).first = waiter,
            }
            (*queue).last = waiter;
        }
    }

    /// Removes `waiter`, which is queued. Returns the next waiter.
    pub(super) fn remove(&mut self, waiter: &Waiter<M>) -> *const Waiter<M> {
        // SAFETY: the queue is locked, and queued waiters stay in place.
        unsafe {
            let queue = self.queue.write();
            let Links { previous, next, .. } = waiter.links.read().read();
            match previous.as_ref() {
                Some(previous) => (*previous.links.write()).next = next,
                None => (*queue).first = next,
            }
            match next.as_ref() {
                Some(next) => (*next.links.write()).previous = previous,
                None => (*queue).last = previous,
            }
            next
        }
    }

    /// Removes the readers from the queue, up to 256 of them.
    pub(super) fn take_readers(&mut self) -> Readers<M> {
        let mut readers = Readers::none();
        let mut at = self.ends().0;
        let mut last: *const Waiter<M> = null();
        // SAFETY: the queue is locked, and queued waiters, and readers that have not been granted
        // the lock, stay in place.
        while let Some(waiter) = unsafe { at.as_ref() }
            && readers.count < BATCH
        {
            at = if waiter.writes {
                // SAFETY: the queue is locked, and the waiter stays in place.
                unsafe { (*waiter.links.read()).next }
            } else {
                let next = self.remove(waiter);
                // SAFETY: the queue is locked, and the waiter stays in place.
                unsafe {
                    (*waiter.links.write()).next = null();
                    match last.as_ref() {
                        Some(last) => (*last.links.write()).next = waiter,
                        None => readers.first = waiter,
                    }
                }
                last = from_ref(waiter);
                readers.count += 1;
                next
            };
        }
        readers
    }
}

/// Readers that have been taken from the queue and granted the lock; each sleeps until it is told.
pub(super) struct Readers<M: Machine> {
    first: *const Waiter<M>,
    pub(super) count: usize,
}

impl<M: Machine> Readers<M> {
    pub(super) const fn none() -> Self {
        Readers {
            first: null(),
            count: 0,
        }
    }
}

/// Tells the readers, one by one, and yields the tasks to wake.
impl<M: Machine> Iterator for Readers<M> {
    type Item = M::Task;

    fn next(&mut self) -> Option<M::Task> {
        // SAFETY: a reader stays in place until it is granted the lock.
        let waiter = unsafe { self.first.as_ref() }?;
        let task = waiter.task;
        // SAFETY: the waiter has left the queue, so the waker owns its links.
        self.first = unsafe { (*waiter.links.read()).next };
        // Release: pairs with the acquire in `Waiter::wait`.
        waiter.granted.store(1, Ordering::Release);
        Some(task)
    }
}
