//! A CPU's ready tasks by virtual time.
//!
//! Linux has a red-black tree with its first node cached; this is a skew heap (Sleator and Tarjan,
//! 1986): the first task is at its root, to add or remove one takes O(log n) steps on average, and
//! the order is the same. Under the lock of the run queue.

use super::{Cfs, Task};
use crate::queue::Link;
use machine::Contexts;

/// A task's node in the heap.
pub(super) struct Node<M: Contexts> {
    parent: Link<M, Cfs<M>>,
    left: Link<M, Cfs<M>>,
    right: Link<M, Cfs<M>>,
}

impl<M: Contexts> Node<M> {
    pub(super) fn new() -> Self {
        Node {
            parent: Link::new(),
            left: Link::new(),
            right: Link::new(),
        }
    }
}

/// The heap of a run queue's ready tasks.
pub(super) struct Tree<M: Contexts>(Link<M, Cfs<M>>);

impl<M: Contexts> Tree<M> {
    pub(super) fn new() -> Self {
        Tree(Link::new())
    }

    /// The task with the least virtual time.
    pub(super) fn first(&self) -> Option<Task<M>> {
        self.0.get()
    }

    /// Adds a task that is in no heap.
    pub(super) fn add(&self, task: Task<M>) {
        let node = &task.entry().node;
        node.left.set(None);
        node.right.set(None);
        self.0.set(merge(self.0.get(), Some(task)));
    }

    /// Removes a task of this heap.
    pub(super) fn remove(&self, task: Task<M>) {
        let node = &task.entry().node;
        let parent = node.parent.get();
        let rest = merge(node.left.get(), node.right.get());
        if let Some(rest) = rest {
            rest.entry().node.parent.set(parent);
        }
        let Some(parent) = parent else {
            return self.0.set(rest);
        };
        let above = &parent.entry().node;
        let place = if above.left.get() == Some(task) {
            &above.left
        } else {
            &above.right
        };
        place.set(rest);
    }
}

/// Merges two heaps. Of tasks with the same time, those of `a` come first.
fn merge<M: Contexts>(mut a: Option<Task<M>>, mut b: Option<Task<M>>) -> Option<Task<M>> {
    let mut root = None;
    let mut parent: Option<Task<M>> = None;
    loop {
        if let (Some(first), Some(second)) = (a, b)
            && second.entry().vruntime() < first.entry().vruntime()
        {
            (a, b) = (b, a);
        }
        let next = a.or(b);
        match parent {
            Some(parent) => parent.entry().node.left.set(next),
            None => root = next,
        }
        let Some(next) = next else {
            return root;
        };
        let node = &next.entry().node;
        node.parent.set(parent);
        if a.is_none() || b.is_none() {
            return root;
        }
        a = node.right.get();
        node.right.set(node.left.get());
        parent = Some(next);
    }
}
