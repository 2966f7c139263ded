//! Backoff proportional to the distance (Mellor-Crummey and Scott, 1991, §2.2).

use super::ticket::{Pace, TicketLock};
use machine::Machine;

/// Pauses for each place in the queue: a guess at how long a short critical
/// section and its hand-over take, about 200 ns on a current x86-64.
const PAUSES_PER_PLACE: u32 = 5;

/// A ticket lock (8 bytes) whose waiters delay by their distance times a guess
/// at the holding time. FIFO.
///
/// Fewer looks than [`super::Conbo`] where the guess is right; where sections are
/// shorter than it, each hand-over waits for a sleeper, even between two CPUs.
pub type Proportional<M> = TicketLock<M, ProportionalPace>;

/// The pace of [`Proportional`].
#[derive(Default)]
pub struct ProportionalPace {
    round: u32,
}

impl<M: Machine> Pace<M> for ProportionalPace {
    const NAME: &'static str = "proportional";

    #[inline]
    fn pause(&mut self, distance: u32) {
        M::delay(distance.saturating_mul(PAUSES_PER_PLACE));
        M::relax(self.round);
        self.round = self.round.saturating_add(1);
    }
}
