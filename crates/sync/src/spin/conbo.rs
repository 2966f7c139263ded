//! CONBO, the conservative backoff lock (seed 004: Kleen and Chen, 2011).
//!
//! "Use lock backoff, but do no harm": backoff from the ticket difference.
//!
//! # Why it does no harm
//! Compared with the plain ticket lock in the same situation:
//!
//! - *Nobody waits*: the same instructions; the pace is consulted by waiters only.
//! - *Next in line* (distance 1; with two CPUs, always): no delay, the same loop.
//! - *Further back*: a waiter at distance `d` delays `d - 1` pauses, so one for
//!   each hand-over that must happen before it is next in line. A hand-over moves a
//!   cache line between CPUs and releases at least one critical section; on x86-64
//!   that takes longer (117 ns measured) than a pause (10 to 45 ns). So the delay ends
//!   before the waiter is next in line, and there is nothing it could have missed.
//!   Meanwhile it does not fetch the line `d - 1` times, which is the gain: the looks
//!   of a wait from distance `d` fall from `d` towards the logarithm of `d`.
//! - *Where that arithmetic is off* (two hardware threads of one core, slow pauses):
//!   a delay is at most [`MAX_DELAY`] pauses, after which the distance is read anew.
//! - *Where nothing moves* (a long section, a preempted holder): a look that finds
//!   the distance unchanged counts its delay as spent in vain; after [`PATIENCE`]
//!   vain pauses this wait goes on as the plain ticket lock's, and gives its CPU
//!   away as early as that would.

use super::ticket::{Pace, TicketLock};
use machine::Machine;

/// The longest delay between two looks, in pauses.
const MAX_DELAY: u32 = 64;

/// Pauses spent in vain after which a wait delays no more; what hosted machines
/// spend before they yield.
const PATIENCE: u32 = 64;

/// The ticket lock with conservative backoff: 8 bytes. FIFO.
pub type Conbo<M> = TicketLock<M, ConboPace>;

/// The pace of [`Conbo`].
#[derive(Default)]
pub struct ConboPace {
    /// The distance at the last look; 0 before the first.
    last: u32,
    /// What the next pause delays if it turns out to be in vain.
    delayed: u32,
    /// Pauses spent while the distance did not change.
    vain: u32,
}

impl ConboPace {
    /// How long to delay at this distance, in pauses.
    #[inline]
    fn delay(&mut self, distance: u32) -> u32 {
        if distance == self.last {
            self.vain = self.vain.saturating_add(1 + self.delayed);
        }
        self.last = distance;
        self.delayed = if self.vain < PATIENCE {
            (distance - 1).min(MAX_DELAY)
        } else {
            0
        };
        self.delayed
    }
}

impl<M: Machine> Pace<M> for ConboPace {
    const NAME: &'static str = "conbo";

    #[inline]
    fn pause(&mut self, distance: u32) {
        let pauses = self.delay(distance);
        if pauses != 0 {
            M::delay(pauses);
        }
        // On a simulator this returns at once if the lock has moved meanwhile.
        M::relax(self.vain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_in_line_never_delays() {
        let mut pace = ConboPace::default();
        for _ in 0..1000 {
            assert_eq!(pace.delay(1), 0);
        }
    }

    #[test]
    fn no_delay_outlasts_the_turns_before_being_next() {
        for distance in 1..1000 {
            let delay = ConboPace::default().delay(distance);
            assert_eq!(delay, (distance - 1).min(MAX_DELAY));
        }
    }

    #[test]
    fn progress_keeps_the_backoff() {
        let mut pace = ConboPace::default();
        for distance in (2..200).rev() {
            assert_eq!(pace.delay(distance), (distance - 1).min(MAX_DELAY));
        }
    }

    #[test]
    fn without_progress_it_becomes_the_ticket_lock() {
        let mut pace = ConboPace::default();
        let (mut spent, mut looks) = (0, 0);
        while pace.delay(20) != 0 {
            spent += 1 + pace.delayed;
            looks += 1;
            assert!(looks < 100, "it delays for ever");
        }
        assert!((PATIENCE..PATIENCE + MAX_DELAY).contains(&spent), "{spent}");
        assert!(
            pace.vain >= PATIENCE,
            "a hosted machine would not yield yet"
        );
    }
}
