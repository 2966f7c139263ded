//! CONBO, the conservative backoff lock (case study 004: Kleen and Chen, 2011).
//!
//! "Use lock backoff, but do no harm": backoff by the ticket difference. The case study leaves the
//! length of a delay open. No constant fits: a pause takes from 2 to 50 ns, a turn from 100 ns to
//! microseconds, longer with more waiters. So a waiter measures with the machine's clock the cost
//! of a look that finds that the lock has been passed on: a turn costs at least as much, since the
//! next waiter has to look too.
//!
//! ```text
//! look at distance d:   look = the cheapest look of this wait that found d changed
//!                       delay d - 1 times look, then one relaxation
//! ```
//!
//! # Why it does no harm
//! Compared with the plain ticket lock in the same situation:
//!
//! - *No waiters*: the same instructions; only waiters use the pace.
//! - *Next in line* (distance 1; with two CPUs, always): no delay, the same loop.
//! - *Further back*: a waiter at distance `d` delays by less than the `d - 1` turns that must pass
//!   before it is next in line: a turn is the release, which takes the cache line from all lookers,
//!   the look of the next waiter, and a critical section. So the delay misses nothing. Meanwhile
//!   the waiter does not fetch the line `d - 1` times, which is the gain: the looks of a wait from
//!   distance `d` fall from `d` towards the logarithm of `d`. Before the first look has been timed,
//!   a pause counts as a turn.
//! - *Delays do not feed on each other*: the lock measures the cost of moving a line, not the
//!   length of turns. A waiter that overslept makes turns longer, but no delay.
//! - **If that arithmetic is wrong* (a waiter that lost its CPU while it looked): a delay lasts at
//!   most [`MAX_DELAY`], after which the distance is read again.
//! - **If no turn passes* (a long section, a preempted holder): after [`PATIENCE`] pauses without a
//!   turn the wait continues as in the plain ticket lock until a turn passes, and yields the CPU as
//!   that does.

use super::ticket::{Pace, TicketLock};
use machine::Machine;

/// The longest delay between two looks, in nanoseconds.
const MAX_DELAY: u64 = 50_000;

/// Pauses without a turn after which a wait delays no more: as many as hosted machines spend before
/// they yield.
const PATIENCE: u32 = 64;

/// The ticket lock with conservative backoff: 8 bytes. FIFO.
pub type Conbo<M> = TicketLock<M, ConboPace>;

/// The pace of [`Conbo`]: conservative backoff.
#[derive(Debug, Default)]
pub struct ConboPace {
    /// The distance at the last look; 0 before the first.
    last: u32,
    /// Pauses spent since that distance was first seen.
    vain: u32,
    /// The delay before the next look, in pauses.
    delayed: u32,
    /// Picoseconds a pause, as measured; 0 before the first delay.
    pause: u64,
    /// Nanoseconds of the cheapest look that found that the lock had been passed on; 0 before the
    /// first.
    look: u64,
    /// When the last look began.
    began: u64,
}

impl ConboPace {
    /// The pauses for which to delay at this distance, given the cost of the look at it.
    #[inline]
    fn delay(&mut self, distance: u32, cost: u64) -> u32 {
        if distance == self.last {
            self.vain = self.vain.saturating_add(1 + self.delayed);
        } else {
            self.vain = 0;
            if self.last != 0 && (self.look == 0 || cost < self.look) {
                self.look = cost;
            }
        }
        self.last = distance;
        self.delayed = if self.vain < PATIENCE {
            self.pauses(distance - 1)
        } else {
            0
        };
        self.delayed
    }

    /// Pauses that pass during this many turns.
    fn pauses(&self, turns: u32) -> u32 {
        if self.look == 0 || self.pause == 0 {
            return turns.min(PATIENCE);
        }
        let time = (u64::from(turns) * self.look).min(MAX_DELAY);
        u32::try_from(time * 1000 / self.pause).unwrap_or(u32::MAX)
    }

    /// Records the length of a pause: `pauses` took `time` nanoseconds.
    fn timed(&mut self, pauses: u32, time: u64) {
        self.pause = (time * 1000 / u64::from(pauses)).max(1);
    }
}

impl<M: Machine> Pace<M> for ConboPace {
    const NAME: &'static str = "conbo";

    #[inline]
    fn pause(&mut self, distance: u32) {
        if distance > 1 {
            let now = M::now();
            let pauses = self.delay(distance, now.saturating_sub(self.began));
            if pauses != 0 {
                M::delay(pauses);
                self.timed(pauses, M::now().saturating_sub(now));
            }
        }
        // On a simulator this returns at once if the lock has moved meanwhile.
        M::relax(self.vain);
        if distance > 1 {
            self.began = M::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace after two looks. The second found that the lock had been passed on, and took `look`
    /// nanoseconds; a pause takes `pause`.
    fn timed(look: u64, pause: u64) -> ConboPace {
        let mut pace = ConboPace::default();
        let first = pace.delay(1001, 0);
        pace.timed(first, u64::from(first) * pause);
        pace.delay(1000, look);
        pace
    }

    #[test]
    fn before_a_look_is_timed_a_turn_is_a_pause() {
        for distance in 2..1000 {
            let delay = ConboPace::default().delay(distance, 5_000);
            assert_eq!(delay, (distance - 1).min(PATIENCE));
        }
    }

    #[test]
    fn no_delay_outlasts_the_looks_before_being_next() {
        for distance in 2..999 {
            for (look, pause) in [(50, 5), (50, 47), (500, 5), (500, 47), (7, 47)] {
                let delay = u64::from(timed(look, pause).delay(distance, look));
                let turns = u64::from(distance - 1);
                assert!(delay * pause <= turns * look, "{distance}, {look}, {pause}");
                assert!(delay * pause <= MAX_DELAY);
                assert!((delay + 1) * pause > (turns * look).min(MAX_DELAY));
            }
        }
    }

    #[test]
    fn the_cheapest_look_counts() {
        let mut pace = timed(100, 10);
        assert_eq!(pace.delay(11, 40), 40);
        assert_eq!(
            pace.delay(6, 4_000_000),
            20,
            "it lost its CPU while it looked"
        );
    }

    #[test]
    fn a_look_at_what_has_not_changed_is_not_timed() {
        let mut pace = timed(100, 10);
        let delay = pace.delay(3, 100);
        assert_eq!(pace.delay(3, 1), delay);
    }

    #[test]
    fn progress_keeps_the_backoff() {
        let mut pace = timed(100, 10);
        for distance in (2..200).rev() {
            assert_eq!(pace.delay(distance, 100), 10 * (distance - 1));
        }
    }

    #[test]
    fn without_progress_it_becomes_the_ticket_lock_until_there_is_some() {
        let mut pace = ConboPace::default();
        let mut looks = 0;
        while pace.delay(20, 100) != 0 {
            looks += 1;
            assert!(looks < 100, "it delays forever");
        }
        let spent = pace.vain;
        assert!((PATIENCE..2 * PATIENCE).contains(&spent), "{spent}");
        assert_ne!(pace.delay(19, 100), 0);
    }
}
