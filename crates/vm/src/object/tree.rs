//! An object's tree: from a page index to its entry.
//!
//! # Protocol
//! Nodes are added by compare-and-swap and stay until the object goes, so a descent
//! takes no lock and writes nothing: an acquire load for each level. The root's word
//! says how many levels there are; a taller root takes the old one as its first child,
//! and a task that still descends from that finds the same entries.
//!
//! # Cost
//! 512 bytes for each 56 pages (224 KiB) ever touched, and for each 64, 4096 and so on leaves: 9.3
//! bytes a page of densely touched memory, until the object goes.

use super::entry::Entry;
use super::leaf::{ENTRIES, Leaf};
use crate::error::Error;
use crate::heap::try_box;
use alloc::boxed::Box;
use core::ops::Range;
use core::ptr::NonNull;
use core::{array, iter, ptr};
use machine::{Atomic, Machine, Ordering};

/// log2 of the children of an inner node.
const SHIFT: u32 = 6;
const FAN_OUT: usize = 1 << SHIFT;

/// The radix tree of an object's entries.
pub(super) struct Tree<M: Machine> {
    /// The root, with its level in the low bits: 0 is a leaf. Null at first.
    root: M::AtomicPtr,
}

/// A node above the leaves. A child is written once.
#[repr(align(64))]
struct Inner<M: Machine>([M::AtomicPtr; FAN_OUT]);

/// The bits of a root's address that hold its level.
const LEVEL: usize = 63;

/// A node and its level; the type is known from that.
#[derive(Clone, Copy)]
struct Node {
    place: *mut (),
    level: u32,
}

impl Node {
    fn from_word(word: *mut ()) -> Option<Self> {
        (!word.is_null()).then(|| Node {
            place: word.map_addr(|address| address & !LEVEL),
            level: (word.addr() & LEVEL) as u32,
        })
    }

    fn to_word(self) -> *mut () {
        debug_assert!(
            self.place.addr() & LEVEL == 0 && self.level as usize <= LEVEL,
            "a node's address has no room for its level"
        );
        self.place.map_addr(|address| address | self.level as usize)
    }

    /// The number of leaves that it covers, if that fits in the type.
    fn leaves(self) -> u64 {
        1u64.checked_shl(SHIFT * self.level).unwrap_or(u64::MAX)
    }
}

impl<M: Machine> Tree<M> {
    /// A tree without entries.
    pub(super) fn new() -> Self {
        Tree {
            root: M::AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The entry of `index`, if there is a leaf for it. O(levels).
    #[inline]
    pub(super) fn find(&self, index: u64) -> Option<&Entry<M>> {
        let number = index / ENTRIES as u64;
        let mut node = self.root()?;
        if number >= node.leaves() {
            return None;
        }
        while node.level > 0 {
            // SAFETY: nodes of this tree are of the kind their level says.
            node = unsafe { self.child(node, number) }?;
        }
        // SAFETY: a node of this tree, of level 0 now.
        Some(unsafe { self.leaf(node) }.entry(index))
    }

    /// The entry of `index`; makes the nodes that it needs. An error may leave empty nodes. The
    /// leaves belong to `object`.
    pub(super) fn make(&self, index: u64, object: NonNull<()>) -> Result<&Entry<M>, Error> {
        if let Some(entry) = self.find(index) {
            return Ok(entry);
        }
        let number = index / ENTRIES as u64;
        let mut node = self.tall_enough(number, object)?;
        while node.level > 0 {
            // SAFETY: nodes of this tree are of the kind their level says.
            node = match unsafe { self.child(node, number) } {
                Some(child) => child,
                // SAFETY: a node of this tree, above level 0.
                None => unsafe { self.grow(node, number, object) }?,
            };
        }
        // SAFETY: a node of this tree, of level 0 now.
        Ok(unsafe { self.leaf(node) }.entry(index))
    }

    /// The entries of `range` for which there are leaves, in order.
    pub(super) fn entries(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Entry<M>)> {
        let inside = range.clone();
        let leaves = self.leaves(range);
        leaves.flat_map(move |leaf| leaf.entries(inside.clone()))
    }

    /// The leaves that have indices in `range`, in order.
    fn leaves(&self, range: Range<u64>) -> impl Iterator<Item = &Leaf<M>> {
        let mut next = range.start / ENTRIES as u64;
        let end = range.end.div_ceil(ENTRIES as u64);
        iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let (number, leaf) = self.first_from(self.root()?, 0, next)?;
            next = number + 1;
            (number < end).then_some(leaf)
        })
    }

    /// The first leaf with a number from `from` on below `node`, whose first is `base`.
    fn first_from(&self, node: Node, base: u64, from: u64) -> Option<(u64, &Leaf<M>)> {
        if node.level == 0 {
            // SAFETY: nodes of this tree are of the kind their level says.
            return (base >= from).then(|| (base, unsafe { self.leaf(node) }));
        }
        let span = SHIFT * (node.level - 1);
        // The first child that reaches to `from`.
        let first = from.saturating_sub(base) >> span;
        (first..FAN_OUT as u64).find_map(|place| {
            let base = base + (place << span);
            // SAFETY: a node of this tree, above level 0.
            self.first_from(unsafe { self.child(node, base) }?, base, from)
        })
    }

    fn root(&self) -> Option<Node> {
        // Acquire: pairs with the release in `tall_enough`.
        Node::from_word(self.root.load(Ordering::Acquire))
    }

    /// # Safety
    /// `node` is one of this tree's, of level 0.
    unsafe fn leaf(&self, node: Node) -> &Leaf<M> {
        debug_assert_eq!(node.level, 0, "an inner node is taken for a leaf");
        // SAFETY: leaves stay while the tree does.
        unsafe { &*node.place.cast::<Leaf<M>>() }
    }

    /// The link of `node` to the child on the way to leaf `number`.
    ///
    /// # Safety
    /// `node` is one of this tree's, above level 0.
    unsafe fn link(&self, node: Node, number: u64) -> &M::AtomicPtr {
        debug_assert!(node.level > 0, "a leaf is taken for an inner node");
        let place = (number >> (SHIFT * (node.level - 1))) as usize % FAN_OUT;
        // SAFETY: nodes stay while the tree does.
        unsafe { &(&*node.place.cast::<Inner<M>>()).0[place] }
    }

    /// # Safety
    /// `node` is one of this tree's, above level 0.
    unsafe fn child(&self, node: Node, number: u64) -> Option<Node> {
        // SAFETY: the caller says that `node` is one of this tree's, above level 0.
        // Acquire: pairs with the release in `grow`.
        let place = unsafe { self.link(node, number) }.load(Ordering::Acquire);
        let level = node.level - 1;
        (!place.is_null()).then_some(Node { place, level })
    }

    /// A root that covers leaf `number`.
    fn tall_enough(&self, number: u64, object: NonNull<()>) -> Result<Node, Error> {
        loop {
            let root = self.root();
            if let Some(root) = root
                && number < root.leaves()
            {
                return Ok(root);
            }
            debug_assert!(
                root.is_none_or(|root| SHIFT * root.level < u64::BITS),
                "no root can be taller"
            );
            let made = match root {
                None => new_node::<M>(0, 0, object)?,
                Some(root) => {
                    let taller = new_node::<M>(root.level + 1, 0, object)?;
                    // SAFETY: just made, above level 0.
                    unsafe { self.link(taller, 0) }.store(root.place, Ordering::Relaxed);
                    taller
                }
            };
            let old = root.map_or(ptr::null_mut(), Node::to_word);
            // Release: a task that finds the node finds it whole.
            let won = self.root.compare_exchange(
                old,
                made.to_word(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if won.is_err() {
                // SAFETY: made above, and no task has seen it.
                unsafe { free_node::<M>(made) };
            }
        }
    }

    /// Makes the child of `node` on the way to leaf `number`.
    ///
    /// # Safety
    /// `node` is one of this tree's, above level 0.
    unsafe fn grow(&self, node: Node, number: u64, object: NonNull<()>) -> Result<Node, Error> {
        let made = new_node::<M>(node.level - 1, number, object)?;
        // SAFETY: the caller says that `node` is one of this tree's, above level 0.
        let link = unsafe { self.link(node, number) };
        // Release: a task that finds the node finds it whole. Acquire: another task's node is, too.
        match link.compare_exchange(
            ptr::null_mut(),
            made.place,
            Ordering::Release,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(made),
            Err(place) => {
                // SAFETY: made above, and no task has seen it.
                unsafe { free_node::<M>(made) };
                Ok(Node { place, ..made })
            }
        }
    }
}

/// An empty node of `level` on the way to leaf `number`.
fn new_node<M: Machine>(level: u32, number: u64, object: NonNull<()>) -> Result<Node, Error> {
    let place = if level == 0 {
        let leaf = Leaf::<M>::allocate(object, number * ENTRIES as u64)?;
        // An entry's address, which pages keep as a number, leads back to the leaf.
        leaf.as_ptr().expose_provenance();
        leaf.as_ptr().cast()
    } else {
        let null = |_| M::AtomicPtr::new(ptr::null_mut());
        let inner = try_box(Inner::<M>(array::from_fn(null)))?;
        M::label_value(&*inner, "Object.inner");
        Box::into_raw(inner).cast()
    };
    Ok(Node { place, level })
}

/// # Safety
/// `node` is from [`new_node`], and is not used any more.
unsafe fn free_node<M: Machine>(node: Node) {
    // SAFETY: the node is not used any more, as the caller says, and its level says its kind.
    unsafe {
        match node.level {
            0 => Leaf::free(NonNull::new_unchecked(node.place.cast::<Leaf<M>>())),
            _ => drop(Box::from_raw(node.place.cast::<Inner<M>>())),
        }
    }
}

impl<M: Machine> Tree<M> {
    /// Frees `node` and all below.
    fn free(&self, node: Node) {
        let span = SHIFT * node.level.saturating_sub(1);
        let children = if node.level == 0 { 0 } else { FAN_OUT as u64 };
        for place in 0..children {
            // SAFETY: a node of this tree, above level 0.
            if let Some(child) = unsafe { self.child(node, place << span) } {
                self.free(child);
            }
        }
        // SAFETY: no other user is left.
        unsafe { free_node::<M>(node) };
    }
}

impl<M: Machine> Drop for Tree<M> {
    fn drop(&mut self) {
        if let Some(root) = self.root() {
            self.free(root);
        }
    }
}
