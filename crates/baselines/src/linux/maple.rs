//! The tree of VMAs that faults search without a lock: Linux's maple tree.
//!
//! It follows `lib/maple_tree.c` of Linux 6.12. A node has 256 bytes. A leaf has up to 16 ranges,
//! VMAs and the gaps between them, an inner node up to 10 children; *pivots* are the last addresses
//! of all but the last. A look-up reads two lines a level.
//!
//! # Protocol
//! One task at a time stores, under the map's lock for writing. Nodes that a look-up may have found
//! do not change, but for the children of an inner node: a store makes a copy of each leaf that it
//! concerns, puts it into the parent's slot, with release, and leaves the old one to the epochs. A
//! copy that is too large becomes two nodes, and the parent is copied too. Look-ups run in an epoch
//! section.
//!
//! # Differences
//! - Leaves do not merge with their neighbours, so after a fragmentation some have few ranges.
//! - The largest gap below each child is not kept: addresses are found elsewhere.
//! - A store over exactly one VMA also copies the leaf, where Linux writes the slot.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::{NonNull, null_mut};
use machine::{Atomic, Machine, Ordering, VaRange};
use sync::epoch::Domain;

/// Ranges of a leaf, and children of an inner node.
const RANGES: usize = 16;
const CHILDREN: usize = 10;

/// The last address of a range or a child, and the VMA (null: a gap) or the node.
type Entry = (usize, *mut ());

/// A maple tree of VMAs.
pub(super) struct Maple<M: Machine> {
    root: M::AtomicPtr,
}

/// A node. All its words but an inner node's slots are written before a look-up can find it.
#[repr(C, align(256))]
struct Node<M: Machine> {
    /// The number of its entries, and [`INNER`] if they are nodes.
    head: M::AtomicU64,
    pivots: [M::AtomicUsize; RANGES - 1],
    slots: [M::AtomicPtr; RANGES],
}

/// The flag in a head that the entries are nodes.
const INNER: u64 = 1 << 32;

impl<M: Machine> Node<M> {
    /// Makes a node of `entries`; the last one ends where the node does.
    fn make(entries: &[Entry], is_inner: bool) -> *mut () {
        const {
            let plain = size_of::<M::AtomicU8>() == 1;
            assert!(!plain || size_of::<Self>() == 256);
        }
        let head = entries.len() as u64 | if is_inner { INNER } else { 0 };
        let entry = |at: usize| entries.get(at).copied().unwrap_or((0, null_mut()));
        let node = Box::leak(Box::new(Node::<M> {
            head: M::AtomicU64::new(head),
            pivots: core::array::from_fn(|at| M::AtomicUsize::new(entry(at).0)),
            slots: core::array::from_fn(|at| M::AtomicPtr::new(entry(at).1)),
        }));
        M::label_value(node, "maple_node");
        core::ptr::from_mut(node).cast()
    }

    /// Makes nodes of at most `most` entries: as few as possible, and of nearly equal size.
    fn make_all(entries: &[Entry], most: usize, is_inner: bool) -> Vec<Entry> {
        let nodes = entries.len().div_ceil(most);
        let each = entries.len().div_ceil(nodes.max(1));
        let chunks = entries.chunks(each.max(1));
        chunks
            .map(|chunk| (chunk[chunk.len() - 1].0, Self::make(chunk, is_inner)))
            .collect()
    }

    /// # Safety
    /// `place` is the address of a node that is in the tree, or was when the caller's section
    /// began.
    unsafe fn at<'a>(place: *mut ()) -> &'a Self {
        // SAFETY: by this function's contract.
        unsafe { &*place.cast::<Self>() }
    }

    fn head(&self) -> (usize, bool) {
        let head = self.head.load(Ordering::Relaxed);
        ((head & !INNER) as usize, head & INNER != 0)
    }

    fn slot(&self, address: usize) -> &M::AtomicPtr {
        let last = self.head().0 - 1;
        let mut pivots = self.pivots[..last].iter();
        let at = pivots.position(|pivot| address <= pivot.load(Ordering::Relaxed));
        &self.slots[at.unwrap_or(last)]
    }

    /// The entries of a node that ends at `end`.
    fn entries(&self, end: usize) -> Vec<Entry> {
        let count = self.head().0;
        let last = |at: usize| {
            if at + 1 == count {
                end
            } else {
                self.pivots[at].load(Ordering::Relaxed)
            }
        };
        let entry = |at: usize| (last(at), self.slots[at].load(Ordering::Relaxed));
        (0..count).map(entry).collect()
    }
}

impl<M: Machine> Maple<M> {
    /// A tree without a VMA.
    pub(super) fn new() -> Self {
        Maple {
            root: M::AtomicPtr::new(Node::<M>::make(&[(usize::MAX, null_mut())], false)),
        }
    }

    /// The VMA at `address`. In an epoch section, or under the map's lock.
    pub(super) fn find(&self, address: usize) -> Option<NonNull<()>> {
        // Acquire, here and below: pairs with the releases of `store`, for the content of the node.
        let mut place = self.root.load(Ordering::Acquire);
        loop {
            // SAFETY: a node of the tree; one that has left it stays for as long as the section.
            let node = unsafe { Node::<M>::at(place) };
            place = node.slot(address).load(Ordering::Acquire);
            if !node.head().1 {
                return NonNull::new(place);
            }
        }
    }

    /// Stores `vma`, or a gap, at `range`. Under the map's lock for writing.
    pub(super) fn store(&self, domain: &Domain<M>, range: VaRange, vma: *mut ()) {
        let new = New {
            first: range.start,
            last: range.end - 1,
            vma,
        };
        let old = self.root.load(Ordering::Relaxed);
        let mut gone = Vec::new();
        // SAFETY: the root, of all addresses, and no other task stores.
        let nodes = unsafe { new.replace::<M>(old, (0, usize::MAX), &mut gone) };
        if let Some(nodes) = nodes {
            let root = match nodes[..] {
                [(_, alone)] => alone,
                _ => Node::<M>::make(&nodes, true),
            };
            // Release: pairs with the acquire in `find`.
            self.root.store(root, Ordering::Release);
        }
        for place in gone {
            // SAFETY: `replace` has taken it out of the tree, and nodes come from boxes.
            domain.defer_drop(unsafe { Box::from_raw(place.cast::<Node<M>>()) });
        }
    }

    /// Fills a tree that no task knows yet with these VMAs, in ascending order.
    pub(super) fn fill(&self, vmas: impl Iterator<Item = (VaRange, *mut ())>) {
        let mut entries: Vec<Entry> = Vec::new();
        let mut next = 0;
        for (range, vma) in vmas {
            if range.start > next {
                entries.push((range.start - 1, null_mut()));
            }
            entries.push((range.end - 1, vma));
            next = range.end;
        }
        entries.push((usize::MAX, null_mut()));
        let mut nodes = Node::<M>::make_all(&entries, RANGES, false);
        while nodes.len() > 1 {
            nodes = Node::<M>::make_all(&nodes, CHILDREN, true);
        }
        // SAFETY: no other task knows the tree.
        unsafe { free::<M>(self.root.load(Ordering::Relaxed)) };
        // Release: pairs with the acquire in `find`.
        self.root.store(nodes[0].1, Ordering::Release);
    }
}

/// A range that is to be stored.
struct New {
    first: usize,
    last: usize,
    vma: *mut (),
}

impl New {
    /// Stores the range in the node at `place`, of the addresses from `from` to `to`. Returns the
    /// nodes that replace it; `None` if a change in it was enough. Adds the nodes that are no
    /// longer in the tree to `gone`.
    ///
    /// # Safety
    /// No other task stores, and the node is in the tree.
    unsafe fn replace<M: Machine>(
        &self,
        place: *mut (),
        (from, to): (usize, usize),
        gone: &mut Vec<*mut ()>,
    ) -> Option<Vec<Entry>> {
        // SAFETY: by this function's contract.
        let node = unsafe { Node::<M>::at(place) };
        let (entries, is_inner) = (node.entries(to), node.head().1);
        if !is_inner {
            gone.push(place);
            return Some(Node::<M>::make_all(
                &self.over(&entries, from),
                RANGES,
                false,
            ));
        }
        let (mut all, mut first, mut grows) = (Vec::new(), from, false);
        for (at, (last, child)) in entries.into_iter().enumerate() {
            let is_concerned = first <= self.last && self.first <= last;
            let new = if is_concerned {
                // SAFETY: a child of a node in the tree.
                unsafe { self.replace::<M>(child, (first, last), gone) }
            } else {
                None
            };
            match new.as_deref() {
                // Release: pairs with the acquire in `Maple::find`.
                Some(&[(_, one)]) => {
                    node.slots[at].store(one, Ordering::Release);
                    all.push((last, one));
                }
                Some(several) => {
                    grows = true;
                    all.extend(several);
                }
                None => all.push((last, child)),
            }
            first = last.wrapping_add(1);
        }
        grows.then(|| {
            gone.push(place);
            Node::<M>::make_all(&all, CHILDREN, true)
        })
    }

    /// The ranges of a leaf that begins at `first`, with this range stored over them; neighbouring
    /// gaps become one.
    fn over(&self, entries: &[Entry], mut first: usize) -> Vec<Entry> {
        let mut all: Vec<Entry> = Vec::with_capacity(entries.len() + 2);
        let mut push = |last: usize, vma: *mut ()| match all.last_mut() {
            Some(before) if before.1 == vma => before.0 = last,
            _ => all.push((last, vma)),
        };
        for &(last, vma) in entries {
            if first < self.first {
                push(last.min(self.first - 1), vma);
            }
            if first <= self.last && self.first <= last {
                push(last.min(self.last), self.vma);
            }
            if last > self.last {
                push(last, vma);
            }
            first = last.wrapping_add(1);
        }
        all
    }
}

/// Frees a node and all below.
///
/// # Safety
/// No other task can reach the node.
unsafe fn free<M: Machine>(place: *mut ()) {
    // SAFETY: nodes come from boxes, and the caller hands over this one.
    let node = unsafe { Box::from_raw(place.cast::<Node<M>>()) };
    let (count, is_inner) = node.head();
    for slot in node.slots.iter().take(if is_inner { count } else { 0 }) {
        // SAFETY: only this node had led to it.
        unsafe { free::<M>(slot.load(Ordering::Relaxed)) };
    }
}

impl<M: Machine> Drop for Maple<M> {
    fn drop(&mut self) {
        // SAFETY: the space is dropped, so no task looks into its tree.
        unsafe { free::<M>(self.root.load(Ordering::Relaxed)) };
    }
}

#[cfg(test)]
mod tests;
