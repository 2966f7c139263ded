//! The agenda: when each actor is due next.

use super::Time;

/// Bits of a key that number the actor; the rest is the time in picoseconds, good for
/// two and a half hours of simulated time.
const ACTOR_BITS: u32 = 11;
/// The latest time a key can hold.
pub(crate) const NEVER: Time = (1 << (64 - ACTOR_BITS)) - 1;

/// A tournament of keys (time, actor): the earliest wins, of equal times the lowest number. O(log
/// actors) to change one, O(1) to find the winner.
pub(crate) struct Agenda {
    /// A complete binary tree, the root at 1; a leaf for each actor.
    tree: Box<[u64]>,
    leaves: usize,
}

/// A moment and the actor that is due then; ordered.
#[inline]
pub(crate) fn key(time: Time, actor: usize) -> u64 {
    time << ACTOR_BITS | actor as u64
}

impl Agenda {
    /// An agenda in which no actor is due.
    pub(crate) fn new(actors: usize) -> Self {
        assert!(actors <= 1 << ACTOR_BITS, "too many actors");
        let leaves = actors.next_power_of_two();
        Agenda {
            tree: vec![u64::MAX; 2 * leaves].into(),
            leaves,
        }
    }

    /// Makes `actor` due at `time`; never, if that is [`NEVER`].
    #[inline]
    pub(crate) fn set(&mut self, actor: usize, time: Time) {
        let mut at = self.leaves + actor;
        let mut value = if time >= NEVER {
            u64::MAX
        } else {
            key(time, actor)
        };
        loop {
            self.tree[at] = value;
            if at == 1 {
                break;
            }
            value = value.min(self.tree[at ^ 1]);
            at /= 2;
            if self.tree[at] == value {
                break;
            }
        }
    }

    /// When `actor` is due.
    #[inline]
    pub(crate) fn of(&self, actor: usize) -> Time {
        self.tree[self.leaves + actor] >> ACTOR_BITS
    }

    /// The earliest key; above all others if no actor is due.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.tree[1]
    }

    /// The actor that is due first, and when.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Time, usize)> {
        let first = self.first();
        let actor = (first & ((1 << ACTOR_BITS) - 1)) as usize;
        (first != u64::MAX).then_some((first >> ACTOR_BITS, actor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wins_and_ties_go_to_the_lowest() {
        let mut agenda = Agenda::new(5);
        assert_eq!(agenda.next(), None);
        for (actor, time) in [(4, 30), (2, 20), (3, 20), (0, 40)] {
            agenda.set(actor, time);
        }
        assert_eq!(agenda.next(), Some((20, 2)));
        agenda.set(2, NEVER);
        assert_eq!(agenda.next(), Some((20, 3)));
        agenda.set(3, 50);
        assert_eq!(agenda.next(), Some((30, 4)));
        assert_eq!(agenda.of(3), 50);
    }
}
