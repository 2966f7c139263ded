//! An intrusive heap: items by key, the smallest first. Push and pop take O(log n) steps on average
//! over any sequence, and allocate nothing.
//!
//! It is a skew heap (Sleator and Tarjan, 1986): a binary tree in which no key is smaller than its
//! parent's; two trees are merged along their right edges, and each node on the way swaps its
//! children.

use core::ptr::NonNull;
use machine::{Machine, SharedCell};

/// The heap's words in an item. Belongs to the heap that the item is in.
pub struct Node<M: Machine, T: Copy + Send>(M::Cell<Links<M, T>>);

struct Links<M: Machine, T: Copy + Send> {
    key: u64,
    /// `None` until the node is first pushed.
    item: Option<T>,
    left: Link<M, T>,
    right: Link<M, T>,
}

/// A node, or none.
struct Link<M: Machine, T: Copy + Send>(Option<NonNull<Node<M, T>>>);

impl<M: Machine, T: Copy + Send> Clone for Link<M, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine, T: Copy + Send> Copy for Link<M, T> {}

// SAFETY: a link is followed only by the owner of the heap, by the contract of `Heap::push`.
unsafe impl<M: Machine, T: Copy + Send> Send for Link<M, T> {}

impl<M: Machine, T: Copy + Send> Default for Node<M, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine, T: Copy + Send> Node<M, T> {
    /// A node that is in no heap.
    pub fn new() -> Self {
        Node(M::Cell::new(Links {
            key: 0,
            item: None,
            left: Link(None),
            right: Link(None),
        }))
    }
}

/// A heap of items, linked through their nodes.
pub struct Heap<M: Machine, T: Copy + Send> {
    root: Link<M, T>,
    /// The root's key; `u64::MAX` if the heap is empty.
    first: u64,
}

impl<M: Machine, T: Copy + Send> Default for Heap<M, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine, T: Copy + Send> Heap<M, T> {
    /// An empty heap.
    pub const fn new() -> Self {
        Heap {
            root: Link(None),
            first: u64::MAX,
        }
    }

    /// The smallest key; `u64::MAX` if there is none.
    #[inline]
    pub fn first_key(&self) -> u64 {
        self.first
    }

    /// Returns true if nothing is in the heap.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root.0.is_none()
    }

    /// Adds `item` under `key`, by its `node`.
    ///
    /// # Safety
    /// The node is in no heap. It stays in place, and no other task touches it, until it is popped.
    pub unsafe fn push(&mut self, node: &Node<M, T>, key: u64, item: T) {
        // SAFETY: the node is in no heap, so it is the caller's alone.
        let links = unsafe { &mut *node.0.write() };
        *links = Links {
            key,
            item: Some(item),
            left: Link(None),
            right: Link(None),
        };
        self.root = merge(self.root, Link(Some(NonNull::from(node))));
        self.first = self.first.min(key);
    }

    /// Removes one with the smallest key of the items that suit. Items with smaller keys are popped
    /// and put back.
    #[inline]
    pub fn pop_if(&mut self, suits: impl Fn(T) -> bool) -> Option<(u64, T)> {
        let mut passed = Link(None);
        let found = loop {
            let node = self.root;
            match self.pop() {
                Some((_, item)) if !suits(item) => passed = merge(passed, node.alone()),
                found => break found,
            }
        };
        if passed.0.is_some() {
            self.root = merge(passed, self.root);
            self.first = self.root.key();
        }
        found
    }

    /// Removes an item with the smallest key.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let links = self.root.links()?;
        let popped = (links.key, links.item?);
        self.root = merge(links.left, links.right);
        self.first = self.root.links().map_or(u64::MAX, |links| links.key);
        Some(popped)
    }
}

impl<M: Machine, T: Copy + Send> Link<M, T> {
    fn links(&self) -> Option<&Links<M, T>> {
        // SAFETY: by the contract of `push`, a linked node is in place, and it belongs to the
        // heap's owner, the caller.
        self.0.map(|node| unsafe { &*node.as_ref().0.read() })
    }

    /// Makes this node, which has just been popped, a heap of its own.
    fn alone(self) -> Self {
        if let Some(node) = self.0 {
            // SAFETY: the node is in place. The heap's owner has popped it, so no other task
            // touches it.
            let links = unsafe { &mut *node.as_ref().0.write() };
            (links.left, links.right) = (Link(None), Link(None));
        }
        self
    }

    fn key(&self) -> u64 {
        self.links().map_or(u64::MAX, |links| links.key)
    }
}

/// Merges two heaps; of equal keys, those of `a` come first.
fn merge<M: Machine, T: Copy + Send>(mut a: Link<M, T>, mut b: Link<M, T>) -> Link<M, T> {
    let mut root = Link(None);
    let mut place: *mut Link<M, T> = &raw mut root;
    loop {
        if b.key() < a.key() {
            core::mem::swap(&mut a, &mut b);
        }
        let rest = match a.0 {
            Some(_) if b.0.is_none() => a,
            None => b,
            Some(node) => {
                // SAFETY: the node is in place, and in one of the two heaps, which the caller owns.
                let links = unsafe { &mut *node.as_ref().0.write() };
                // SAFETY: `place` is `root`, or the left link of the node merged before.
                unsafe { *place = a };
                a = links.right;
                links.right = links.left;
                place = &raw mut links.left;
                continue;
            }
        };
        // SAFETY: `place` is `root`, or the left link of the node merged last.
        unsafe { *place = rest };
        return root;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use hosted::Hosted;

    /// Pops everything, which frees the nodes.
    fn drain(heap: &mut Heap<Hosted, usize>) -> Vec<(u64, usize)> {
        core::iter::from_fn(|| heap.pop()).collect()
    }

    #[test]
    fn items_come_by_key() {
        let nodes: Vec<Node<Hosted, usize>> = (0..1000).map(|_| Node::new()).collect();
        let mut heap = Heap::new();
        let mut keys = Vec::new();
        for (item, node) in nodes.iter().enumerate() {
            let key = (item as u64 * 7919) % 613;
            keys.push(key);
            // SAFETY: each node is pushed once, and outlives the heap.
            unsafe { heap.push(node, key, item) };
            assert_eq!(heap.first_key(), *keys.iter().min().expect("one at least"));
        }
        let popped = drain(&mut heap);
        assert!(popped.iter().all(|&(key, item)| keys[item] == key));
        keys.sort_unstable();
        assert!(popped.iter().map(|&(key, _)| key).eq(keys));
        assert!(heap.is_empty() && heap.first_key() == u64::MAX);
    }

    #[test]
    fn a_popped_item_may_be_pushed_again() {
        let nodes: [Node<Hosted, usize>; 3] = core::array::from_fn(|_| Node::new());
        let mut heap = Heap::new();
        for (item, node) in nodes.iter().enumerate() {
            // SAFETY: each node is pushed once.
            unsafe { heap.push(node, item as u64, item) };
        }
        let mut order = Vec::new();
        for round in 0..9 {
            let (key, item) = heap.pop().expect("three are in turn");
            order.push(item);
            assert_eq!(key, round);
            // SAFETY: it has just been popped.
            unsafe { heap.push(&nodes[item], key + 3, item) };
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn an_item_that_suits_is_taken_from_between_the_others() {
        let nodes: Vec<Node<Hosted, usize>> = (0..100).map(|_| Node::new()).collect();
        let mut heap = Heap::new();
        for (item, node) in nodes.iter().enumerate() {
            // SAFETY: each node is pushed once, and outlives the heap.
            unsafe { heap.push(node, item as u64, item) };
        }
        assert_eq!(heap.pop_if(|item| item >= 60), Some((60, 60)));
        assert_eq!(heap.pop_if(|item| item >= 100), None);
        assert_eq!(heap.first_key(), 0);
        let rest = drain(&mut heap).into_iter().map(|(_, item)| item);
        assert!(rest.eq((0..100).filter(|&item| item != 60)));
    }

    /// Ascending keys make the longest right edges.
    #[test]
    fn a_long_sorted_sequence_does_not_recurse() {
        let nodes: Vec<Node<Hosted, usize>> = (0..100_000).map(|_| Node::new()).collect();
        let mut heap = Heap::new();
        for (item, node) in nodes.iter().enumerate() {
            // SAFETY: each node is pushed once, and outlives the heap.
            unsafe { heap.push(node, item as u64, item) };
        }
        assert!(
            drain(&mut heap)
                .into_iter()
                .map(|(_, item)| item)
                .eq(0..100_000)
        );
    }
}
