//! The attachments of a shard, in the order of the pages that they map.
//!
//! A treap: a binary tree by the first page (and the attachment's address, since many begin at the
//! same page), balanced by random ranks, in which each node also knows the furthest end below it.
//! So a search for the attachments that map a page skips those that do not: O(log n) for each that
//! is found. The shard's lock protects all of it.

use super::Attachment;
use crate::system::System;
use core::ops::Range;
use core::ptr;
use machine::SharedCell;

/// The position of an attachment in the order, also if the attachment has gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    first: u64,
    address: usize,
}

/// An attachment's links in the tree; null where nothing is below.
pub(super) struct Links<S: System> {
    lower: *const Attachment<S>,
    upper: *const Attachment<S>,
    /// The furthest end of this one and those below.
    end: u64,
    /// No node has a higher one than its parent.
    rank: u64,
}

impl<S: System> Clone for Links<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: System> Copy for Links<S> {}

// SAFETY: links are followed under the shard's lock only.
unsafe impl<S: System> Send for Links<S> {}

impl<S: System> Links<S> {
    /// The links of an attachment that is in no tree.
    pub(super) const NONE: Self = Links {
        lower: ptr::null(),
        upper: ptr::null(),
        end: 0,
        rank: 0,
    };
}

type Node<S> = *const Attachment<S>;

/// A tree of attachments.
pub(super) struct Ranges<S: System> {
    root: Node<S>,
    /// The state of the generator of ranks.
    seed: u64,
}

// SAFETY: attachments may be used by all CPUs, and links are followed under the lock.
unsafe impl<S: System> Send for Ranges<S> {}

impl<S: System> Ranges<S> {
    pub(super) const EMPTY: Self = Ranges {
        root: ptr::null(),
        seed: 0,
    };

    pub(super) fn is_empty(&self) -> bool {
        self.root.is_null()
    }

    /// Adds an attachment.
    ///
    /// # Safety
    /// It is in no tree, and stays where it is until it is removed.
    pub(super) unsafe fn insert(&mut self, node: Node<S>) {
        let (end, rank) = (pages(node).end, self.next_rank());
        let links = Links {
            end,
            rank,
            ..Links::NONE
        };
        // SAFETY: all nodes in the tree are valid, and the caller has locked it.
        unsafe {
            set(node, links);
            self.root = insert(self.root, node);
        }
    }

    /// Takes an attachment out.
    ///
    /// # Safety
    /// It is in this tree.
    pub(super) unsafe fn remove(&mut self, node: Node<S>) {
        // SAFETY: all nodes in the tree are valid, and the caller has locked it.
        self.root = unsafe { remove(self.root, node) };
    }

    /// The first attachment behind `after` (`None`: of all) that maps some of `wanted`, and its
    /// place.
    pub(super) fn next(
        &self,
        wanted: &Range<u64>,
        after: Option<Position>,
    ) -> Option<(&Attachment<S>, Position)> {
        // SAFETY: all nodes in the tree are valid, and the caller has locked it.
        let found = unsafe { next(self.root, wanted, after).as_ref() }?;
        Some((found, place(found)))
    }

    fn next_rank(&mut self) -> u64 {
        // SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ self.seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// The object's pages that the attachment maps.
fn pages<S: System>(node: Node<S>) -> Range<u64> {
    // SAFETY: an attachment that is in a tree, or comes there, is there.
    unsafe { &*node }.pages()
}

fn place<S: System>(node: Node<S>) -> Position {
    Position {
        first: pages(node).start,
        address: node.addr(),
    }
}

/// # Safety
/// The tree of `node` is locked.
unsafe fn get<S: System>(node: Node<S>) -> Links<S> {
    // SAFETY: the caller has locked the tree, so the node is there, and no other task writes.
    unsafe { *(*node).links.read() }
}

/// # Safety
/// The caller has locked the tree of the nodes.
unsafe fn set<S: System>(node: Node<S>, links: Links<S>) {
    // SAFETY: the caller has locked the tree, so the node is there, and no other task uses the
    // links.
    unsafe { *(*node).links.write() = links }
}

/// Gives `node` these children.
///
/// # Safety
/// The caller has locked the tree of the nodes.
unsafe fn join<S: System>(node: Node<S>, lower: Node<S>, upper: Node<S>) -> Node<S> {
    // SAFETY: the caller has locked the tree that the nodes are in.
    unsafe {
        let end_of = |below: Node<S>| if below.is_null() { 0 } else { get(below).end };
        let end = pages(node).end.max(end_of(lower)).max(end_of(upper));
        let rank = get(node).rank;
        set(
            node,
            Links {
                lower,
                upper,
                end,
                rank,
            },
        );
        let may_be_below = |below: Node<S>| below.is_null() || get(below).rank <= rank;
        machine::invariant!(
            S::Machine: may_be_below(lower) && may_be_below(upper),
            "an attachment is below one of a lower rank"
        );
        debug_assert!(
            lower.is_null() || place(lower) < place(node),
            "attachments out of order"
        );
        debug_assert!(
            upper.is_null() || place(node) < place(upper),
            "attachments out of order"
        );
    }
    node
}

/// # Safety
/// The caller has locked the tree of both nodes; `node` is not below `root`.
unsafe fn insert<S: System>(root: Node<S>, node: Node<S>) -> Node<S> {
    if root.is_null() {
        return node;
    }
    // SAFETY: the caller has locked the tree that the nodes are in.
    unsafe {
        let Links {
            lower, upper, rank, ..
        } = get(root);
        if get(node).rank > rank {
            let (lower, upper) = split(root, place(node));
            join(node, lower, upper)
        } else if place(node) < place(root) {
            join(root, insert(lower, node), upper)
        } else {
            join(root, lower, insert(upper, node))
        }
    }
}

/// Splits `root` into the nodes before `at`, and the others.
///
/// # Safety
/// The caller has locked the tree of the nodes.
unsafe fn split<S: System>(root: Node<S>, at: Position) -> (Node<S>, Node<S>) {
    if root.is_null() {
        return (root, root);
    }
    // SAFETY: the caller has locked the tree that the nodes are in.
    unsafe {
        let Links { lower, upper, .. } = get(root);
        if place(root) < at {
            let (before, behind) = split(upper, at);
            (join(root, lower, before), behind)
        } else {
            let (before, behind) = split(lower, at);
            (before, join(root, behind, upper))
        }
    }
}

/// # Safety
/// The caller has locked the tree of both nodes; `node` is `root` or below it.
unsafe fn remove<S: System>(root: Node<S>, node: Node<S>) -> Node<S> {
    debug_assert!(!root.is_null(), "the attachment is in another tree");
    // SAFETY: the caller has locked the tree that the nodes are in.
    unsafe {
        let Links { lower, upper, .. } = get(root);
        if root == node {
            merge(lower, upper)
        } else if place(node) < place(root) {
            join(root, remove(lower, node), upper)
        } else {
            join(root, lower, remove(upper, node))
        }
    }
}

/// Joins two trees into one; all of `lower` comes before all of `upper`.
///
/// # Safety
/// The caller has locked the tree of the nodes.
unsafe fn merge<S: System>(lower: Node<S>, upper: Node<S>) -> Node<S> {
    if lower.is_null() {
        return upper;
    }
    if upper.is_null() {
        return lower;
    }
    debug_assert!(place(lower) < place(upper), "attachments out of order");
    // SAFETY: the caller has locked the tree that the nodes are in.
    unsafe {
        let (low, high) = (get(lower), get(upper));
        if low.rank > high.rank {
            join(lower, low.lower, merge(low.upper, upper))
        } else {
            join(upper, merge(lower, high.lower), high.upper)
        }
    }
}

/// The first attachment behind `after` that maps some of `wanted`, at `root` and below; null if
/// there is none.
///
/// # Safety
/// The caller has locked the tree of the nodes.
unsafe fn next<S: System>(root: Node<S>, wanted: &Range<u64>, after: Option<Position>) -> Node<S> {
    if root.is_null() {
        return root;
    }
    // SAFETY: the caller has locked the tree that the nodes are in.
    unsafe {
        let Links {
            lower, upper, end, ..
        } = get(root);
        if end <= wanted.start {
            return ptr::null();
        }
        if after.is_some_and(|after| place(root) <= after) {
            return next(upper, wanted, after);
        }
        let found = next(lower, wanted, after);
        if !found.is_null() {
            return found;
        }
        let own = pages(root);
        if own.start >= wanted.end {
            ptr::null()
        } else if own.end > wanted.start {
            root
        } else {
            next(upper, wanted, after)
        }
    }
}
