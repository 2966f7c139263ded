//! A queue of spinning tasks that may leave it: an MCS queue whose waiters know their predecessor.
//!
//! A lock whose waiters may sleep lets its spinners queue here: one task spins on the lock, each
//! other one on a cache line of its own, and a task that is to leave its CPU leaves the queue and
//! sleeps (`kernel/locking/osq_lock.c` of Linux 6.12).
//!
//! ```text
//! enter:  last = swap(tail, mine); if none: first
//!         mine.previous = last; last.next = mine; wait until mine.turn, or the task gives up
//! leave:  A  cut off:   until cas(previous.next, mine, null):
//!                           if mine.turn: first; previous = mine.previous
//!         B  successor: until cas(tail, mine, previous):
//!                           if next, and cas(mine.next, next, null): go on with C
//!         C  link:      next.previous = previous; previous.next = next
//! end:    as B, with no previous; next.turn = 1
//! ```
//! The task that takes a link out of a node (A, B, end) alone decides what comes next: a node that
//! another task has taken from its predecessor's link gets its turn or a new predecessor, and one
//! that has taken itself from there gets no turn. B waits for a successor that is in the tail and
//! not linked yet, so a node is in use as long as a queue leads to it.
//!
//! Linux has a node a CPU, since a spinner is not preempted; here a task has places
//! ([`super::place`]), which are never freed, so reading a predecessor that has left does no harm.

use super::place::{self, Node, Place};
use crate::effort::note_spins;
use core::ptr::null_mut;
use machine::{Atomic, Machine, Ordering};

/// The queue: 4 bytes.
pub(crate) struct Osq<M: Machine> {
    /// The code of the last place; 0: none.
    tail: M::AtomicU32,
}

/// Proof of being first in the queue, for as long as this lives.
pub(crate) struct First<'a, M: Machine> {
    queue: &'a Osq<M>,
    place: Place<M>,
}

impl<M: Machine> Osq<M> {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Osq {
            tail: M::AtomicU32::new(0),
        }
    }

    /// Waits until the task is the first; `None` if it gives up before, or there is no place for
    /// it.
    pub(crate) fn enter(&self, gives_up: impl FnMut() -> bool) -> Option<First<'_, M>> {
        let place = place::enter::<M>()?;
        let is_first = self.wait(&place, gives_up);
        is_first.then(|| First { queue: self, place })
    }

    /// Queues `place` and waits. Returns true if its turn has come.
    fn wait(&self, place: &Place<M>, mut gives_up: impl FnMut() -> bool) -> bool {
        let node = place.node();
        node.next.store(null_mut(), Ordering::Relaxed);
        node.turn.store(0, Ordering::Relaxed);
        // Release: the successor finds the node initialised. Acquire: this task finds the
        // predecessor's so, and what the last of an empty queue did.
        let Some(previous) = place.at(self.tail.swap(node.code, Ordering::AcqRel)) else {
            return true;
        };
        node.previous.store(previous.code, Ordering::Relaxed);
        // Release: pairs with the acquire in `successor`, whose caller may write `previous`.
        previous.next.store(node.address(), Ordering::Release);
        let (mut looks, mut is_first) = (0u32, false);
        M::spin_until(|| {
            looks = looks.saturating_add(1);
            // Acquire: pairs with the release of the turn.
            is_first = node.turn.load(Ordering::Acquire) != 0;
            is_first || gives_up()
        });
        note_spins::<M>(looks);
        is_first || self.leave(place)
    }

    /// Takes `place` out of the queue. Returns true if its turn has come instead.
    #[cold]
    fn leave(&self, place: &Place<M>) -> bool {
        let Some(previous) = Self::cut_off(place) else {
            return true;
        };
        if let Some(next) = self.successor(place, previous.code) {
            // Relaxed: `cut_off` needs no more of a predecessor than its place.
            next.previous.store(previous.code, Ordering::Relaxed);
            // Release: pairs with the acquire in `successor`, for what `next` did before it was
            // linked to this node.
            previous.next.store(next.address(), Ordering::Release);
        }
        false
    }

    /// Takes the node out of its predecessor's link; `None` if the node's turn has come.
    fn cut_off(place: &Place<M>) -> Option<&Node<M>> {
        let (node, mut found) = (place.node(), None);
        M::spin_until(|| {
            // Relaxed: the link of a predecessor that has left leads to another node, or to none.
            let previous = place.at(node.previous.load(Ordering::Relaxed));
            found = previous.filter(|previous| {
                let (link, mine) = (&previous.next, node.address());
                link.load(Ordering::Relaxed) == mine
                    && link
                        .compare_exchange(mine, null_mut(), Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok()
            });
            // Acquire: as in `wait`.
            found.is_some() || node.turn.load(Ordering::Acquire) != 0
        });
        found
    }

    /// Takes the successor out of the node's link; `None` if the node was the last of the queue,
    /// and `before` now is.
    fn successor<'p>(&self, place: &'p Place<M>, before: u32) -> Option<&'p Node<M>> {
        let (node, mut next) = (place.node(), null_mut());
        M::spin_until(|| {
            // Release: pairs with the acquire of a task that finds the queue empty.
            let is_last = self.tail.load(Ordering::Relaxed) == node.code
                && self
                    .tail
                    .compare_exchange(node.code, before, Ordering::Release, Ordering::Relaxed)
                    .is_ok();
            let linked = node.next.load(Ordering::Relaxed);
            // Acquire: pairs with the releases by which the successor was linked.
            if !is_last
                && !linked.is_null()
                && node
                    .next
                    .compare_exchange(linked, null_mut(), Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                next = linked;
            }
            is_last || !next.is_null()
        });
        (!next.is_null()).then(|| place.of(next))
    }
}

impl<M: Machine> Drop for First<'_, M> {
    fn drop(&mut self) {
        if let Some(next) = self.queue.successor(&self.place, 0) {
            // Release: pairs with the acquires in `wait` and `cut_off`.
            next.turn.store(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod model;
