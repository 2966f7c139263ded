//! Spins and sleeps, as the locks themselves report them.
//!
//! A lock's slow path adds to two words of the waiting task; [`crate::watch::Watched`] takes the
//! difference over an acquisition that waited. So a lock needs no memory for its counts, and the
//! spins of locks acquired inside a lock's slow path (a turnstile's chain) count for both.

use crate::locals::{SLEEPS, SPINS};
use machine::Machine;

/// Reports that a lock's slow path has spun `rounds` times. Called once, when it has finished
/// spinning.
#[inline]
pub fn note_spins<M: Machine>(rounds: u32) {
    add::<M>(SPINS, rounds as usize);
}

/// Reports that a lock's slow path has slept.
#[inline]
pub fn note_sleep<M: Machine>() {
    add::<M>(SLEEPS, 1);
}

fn add<M: Machine>(word: usize, n: usize) {
    M::with_locals(|locals| {
        let word = &locals.words[word];
        word.set(word.get().wrapping_add(n));
    });
}

/// Spins and sleeps of the calling task so far; only differences are meaningful.
pub(crate) fn effort<M: Machine>() -> (usize, usize) {
    M::with_locals(|locals| (locals.words[SPINS].get(), locals.words[SLEEPS].get()))
}
