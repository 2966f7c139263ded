//! The choice of the place that becomes first in the queue: the next in line, or the nearest on the
//! holder's NUMA node (CNA).

use crate::spin::place::{Node, Place};
use machine::{Atomic, Machine, Ordering};

/// Chooses the place to which the holder of the lock, which was first in the queue, hands its turn.
/// Also returns the code of the last place in the secondary queue, which goes with the turn. `next`
/// is the next in line.
///
/// Only the first of the queue follows and changes links other than its own, and what it has
/// written goes with the turn.
pub(super) fn successor<M: Machine, const KEEP: u32>(
    place: &Place<M>,
    next: *mut (),
) -> (&Node<M>, u32) {
    let secondary = place.secondary();
    if KEEP == 0 || secondary.is_none() && place.random() & (KEEP >> 8) != 0 {
        return (place.of(next), 0);
    }
    if place.random() & KEEP != 0
        && let Some(found) = near(place, next, secondary)
    {
        return found;
    }
    let Some(last) = secondary else {
        return (place.of(next), 0);
    };
    // The secondary queue goes before all others.
    let first = last.next.load(Ordering::Relaxed);
    last.next.store(next, Ordering::Relaxed);
    (place.of(first), 0)
}

/// The first place from `next` on whose task is on this NUMA node; those before it are appended to
/// the secondary queue.
fn near<'a, M: Machine>(
    place: &'a Place<M>,
    next: *mut (),
    secondary: Option<&Node<M>>,
) -> Option<(&'a Node<M>, u32)> {
    let home = place.node().home.load(Ordering::Relaxed);
    let mut before: Option<&Node<M>> = None;
    let mut at = next;
    while !at.is_null() {
        let node = place.of(at);
        if node.home.load(Ordering::Relaxed) == home {
            let Some(last) = before else {
                return Some((node, secondary.map_or(0, |last| last.code)));
            };
            let first = match secondary {
                None => next,
                Some(old) => {
                    let first = old.next.load(Ordering::Relaxed);
                    old.next.store(next, Ordering::Relaxed);
                    first
                }
            };
            last.next.store(first, Ordering::Relaxed);
            return Some((node, last.code));
        }
        before = Some(node);
        // Acquire: pairs with the release by which a task links itself, for its node.
        at = node.next.load(Ordering::Acquire);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{GO, HELD, Queued};
    use super::successor;
    use crate::raw::RawLock;
    use crate::spin::place::{Place, enter};
    use alloc::vec::Vec;
    use core::ptr::{from_ref, null_mut};
    use hosted::Hosted;
    use machine::Ordering::Relaxed;

    /// A queue of places, all of this task, with these NUMA nodes.
    fn queue(homes: &[u32]) -> Vec<Place<Hosted>> {
        let places: Vec<Place<Hosted>> = homes.iter().map(|_| enter().expect("a place")).collect();
        places[0].seed(1);
        for (at, (place, &home)) in places.iter().zip(homes).enumerate() {
            place.node().home.store(home, Relaxed);
            place.node().turn.store(GO, Relaxed);
            let next = places.get(at + 1);
            let next = next.map_or(null_mut(), |next| next.node().address());
            place.node().next.store(next, Relaxed);
        }
        places
    }

    fn leave(places: Vec<Place<Hosted>>) {
        places.into_iter().rev().for_each(drop);
    }

    /// The index of the place that gets the turn, and that of the secondary queue's last.
    fn hand_over(places: &[Place<Hosted>], from: usize) -> (usize, Option<usize>) {
        let next = places[from].node().next.load(Relaxed);
        // A mask that random numbers hardly ever miss, too low for passing over the look.
        let (to, rest) = successor::<Hosted, 0xff>(&places[from], next);
        let index = |code: u32| places.iter().position(|place| place.node().code == code);
        to.turn.store(GO | rest, Relaxed);
        (index(to.code).expect("one of them"), index(rest))
    }

    fn next(places: &[Place<Hosted>], of: usize) -> Option<usize> {
        let next = places[of].node().next.load(Relaxed);
        places
            .iter()
            .position(|place| place.node().address() == next)
    }

    #[test]
    fn waiters_of_other_nodes_are_passed_over_and_come_back() {
        let places = queue(&[0, 1, 1, 0]);
        assert_eq!(hand_over(&places, 0), (3, Some(2)));
        // The last of the secondary queue names its first.
        assert_eq!((next(&places, 1), next(&places, 2)), (Some(2), Some(1)));
        // Place 3 is alone in the queue, and the secondary queue takes its place.
        let lock = Queued::<Hosted, 0xff>::new();
        let (own, last) = (places[3].node().code, places[2].node().code);
        lock.word.store(own, Relaxed);
        assert!(lock.take_last(&places[3], own));
        assert_eq!(lock.word.load(Relaxed), last | HELD);
        assert_eq!(places[1].node().turn.load(Relaxed), GO);
        assert_eq!(next(&places, 2), None);
        leave(places);
    }

    #[test]
    fn the_secondary_queue_grows_and_goes_first_when_nobody_is_near() {
        let places = queue(&[0, 1, 0, 1]);
        assert_eq!(hand_over(&places, 0), (2, Some(1)));
        // Place 0 queues again, behind 3.
        let again = places[0].node();
        again.next.store(null_mut(), Relaxed);
        places[3].node().next.store(again.address(), Relaxed);
        assert_eq!(hand_over(&places, 2), (0, Some(3)));
        assert_eq!((next(&places, 1), next(&places, 3)), (Some(3), Some(1)));
        // Place 2 queues again, now on another node.
        let other = places[2].node();
        other.home.store(2, Relaxed);
        other.next.store(null_mut(), Relaxed);
        again.next.store(other.address(), Relaxed);
        assert_eq!(hand_over(&places, 0), (1, None));
        assert_eq!((next(&places, 1), next(&places, 3)), (Some(3), Some(2)));
        leave(places);
    }

    #[test]
    fn a_fifo_lock_hands_over_to_the_next() {
        let places = queue(&[0, 1, 0]);
        let next = places[1].node();
        let (to, rest) = successor::<Hosted, 0>(&places[0], next.address());
        assert_eq!((from_ref(to), rest), (from_ref(next), 0));
        leave(places);
    }
}
