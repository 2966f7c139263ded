//! Lists of tasks, linked through the tasks' own words.
//!
//! Every word is atomic, read and written relaxed: a list costs no more than plain words, and its
//! functions are safe to call. But only one caller at a time may use a list: the holder of its lock
//! owns the list and the links of the tasks in it.

use crate::{Policy, Task, TaskRef};
use core::marker::PhantomData;
use core::ptr::{NonNull, from_ref, null_mut};
use machine::{Atomic, Contexts, Ordering};

/// A task, or none.
pub struct Link<M: Contexts, P: Policy<M>>(M::AtomicPtr, PhantomData<fn() -> P>);

impl<M: Contexts, P: Policy<M>> Link<M, P> {
    /// A link to no task.
    pub fn new() -> Self {
        Link(M::AtomicPtr::new(null_mut()), PhantomData)
    }

    /// The task that the link leads to.
    #[inline]
    pub fn get(&self) -> Option<TaskRef<M, P>> {
        let place = NonNull::new(self.0.load(Ordering::Relaxed).cast::<Task<M, P>>())?;
        // SAFETY: only `set` writes it, from a reference that is as good as this one.
        Some(unsafe { TaskRef::new(place) })
    }

    /// Sets the task.
    #[inline]
    pub fn set(&self, task: Option<TaskRef<M, P>>) {
        let place = task.map_or(null_mut(), |task| from_ref(&*task).cast_mut().cast());
        self.0.store(place, Ordering::Relaxed);
    }
}

impl<M: Contexts, P: Policy<M>> Default for Link<M, P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A task's links in a list.
pub struct Links<M: Contexts, P: Policy<M>> {
    next: Link<M, P>,
    previous: Link<M, P>,
}

impl<M: Contexts, P: Policy<M>> Links<M, P> {
    /// The links of a task that is in no list.
    pub fn new() -> Self {
        Links {
            next: Link::new(),
            previous: Link::new(),
        }
    }
}

impl<M: Contexts, P: Policy<M>> Default for Links<M, P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A policy's words in a task that can be in a list.
pub trait Linked<M: Contexts, P: Policy<M>> {
    /// The task's links.
    fn links(&self) -> &Links<M, P>;
}

/// A doubly linked list of tasks.
pub struct Queue<M: Contexts, P: Policy<M>> {
    first: Link<M, P>,
    last: Link<M, P>,
}

impl<M: Contexts, P: Policy<M>> Default for Queue<M, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Contexts, P: Policy<M>> Queue<M, P> {
    /// An empty list.
    pub fn new() -> Self {
        Queue {
            first: Link::new(),
            last: Link::new(),
        }
    }

    /// The first task.
    #[inline]
    pub fn first(&self) -> Option<TaskRef<M, P>> {
        self.first.get()
    }

    /// Returns true if no task is in the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

impl<M: Contexts, P: Policy<M, Entry: Linked<M, P>>> Queue<M, P> {
    /// Adds a task, which is in no list, at the end.
    pub fn push_last(&self, task: TaskRef<M, P>) {
        let last = self.last.get();
        let links = task.entry().links();
        links.next.set(None);
        links.previous.set(last);
        match last {
            Some(last) => last.entry().links().next.set(Some(task)),
            None => self.first.set(Some(task)),
        }
        self.last.set(Some(task));
    }

    /// Adds a task, which is in no list, at the head.
    pub fn push_first(&self, task: TaskRef<M, P>) {
        let first = self.first.get();
        let links = task.entry().links();
        links.next.set(first);
        links.previous.set(None);
        match first {
            Some(first) => first.entry().links().previous.set(Some(task)),
            None => self.last.set(Some(task)),
        }
        self.first.set(Some(task));
    }

    /// Removes a task of this list.
    pub fn remove(&self, task: TaskRef<M, P>) {
        let links = task.entry().links();
        let (next, previous) = (links.next.get(), links.previous.get());
        match previous {
            Some(previous) => previous.entry().links().next.set(next),
            None => self.first.set(next),
        }
        match next {
            Some(next) => next.entry().links().previous.set(previous),
            None => self.last.set(previous),
        }
    }

    /// The tasks, from the first on. A task may be removed once the next one has been returned.
    pub fn iter(&self) -> impl Iterator<Item = TaskRef<M, P>> {
        core::iter::successors(self.first(), |task| task.entry().links().next.get())
    }
}
