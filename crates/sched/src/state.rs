//! The state word of a task: active, with a permit, or parked; and the generation of its place.
//!
//! # Protocol
//! One word holds the phase and the place's *generation*: the number of its present task, or of its
//! next one, counted from 1. A name contains the generation, so an unpark by a stale name finds
//! another generation and has no effect.
//!
//! ```text
//! ACTIVE --unpark--> PERMIT --take_permit, or settle--> ACTIVE
//! ACTIVE --settle--> PARKED --unpark--> ACTIVE: the caller hands the task to the policy
//! ```
//! A task that parks stays ACTIVE until it has left its CPU. Only then does that CPU, in its next
//! context, *settle* it: PARKED, or ready at once if a permit has come meanwhile. So a waker that
//! finds PARKED finds a task whose context is saved, no task waits for a CPU to finish a switch,
//! and exactly one of waker and settler hands the task over.

use machine::{Atomic, Machine, Ordering};

/// Running, ready, or about to park.
const ACTIVE: u64 = 0;
/// Running, ready, or about to park, with a permit.
const PERMIT: u64 = 1;
/// On no CPU and in no queue.
const PARKED: u64 = 2;

const PHASE: u64 = 3;
const PHASE_BITS: u32 = 2;

/// The state word of a place.
pub struct State<M: Machine>(M::AtomicU64);

impl<M: Machine> Default for State<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> State<M> {
    /// The state of a place without a task; the first task is active and has generation 1.
    pub fn new() -> Self {
        State(M::AtomicU64::new(1 << PHASE_BITS | ACTIVE))
    }

    /// The generation of the present task, or of the next one. For the task itself, and for callers
    /// that keep it from ending.
    pub fn generation(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> PHASE_BITS
    }

    /// Consumes the calling task's permit. Returns true if it had one.
    pub fn take_permit(&self) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        if seen & PHASE != PERMIT {
            return false;
        }
        // Only the task itself takes its permit, so it is still there. Acquire, and an exchange: it
        // pairs with the release of every `unpark` that has left, or found, the permit.
        self.0.swap(seen & !PHASE | ACTIVE, Ordering::Acquire);
        true
    }

    /// Parks a task that has left its CPU. Returns false if it had a permit after all: this
    /// consumes it, and the caller hands the task to the policy.
    pub fn settle(&self) -> bool {
        let active = self.0.load(Ordering::Relaxed) & !PHASE | ACTIVE;
        // Release: the waker that finds PARKED sees the context saved (acquire in `unpark`).
        let parked = self.0.compare_exchange(
            active,
            active & !PHASE | PARKED,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if parked.is_err() {
            // The other can only have been an `unpark`. Acquire: as in `take_permit`; the policy
            // passes it on to the task.
            self.0.swap(active, Ordering::Acquire);
        }
        parked.is_ok()
    }

    /// Gives the task of this generation its permit. Returns true if it was parked: it is now
    /// active, and the caller hands it to the policy. Does nothing if the task has ended.
    pub fn unpark(&self, generation: u64) -> bool {
        let wake = |seen: u64| {
            (seen >> PHASE_BITS == generation).then_some(match seen & PHASE {
                PARKED => seen & !PHASE | ACTIVE,
                // A permit is exchanged for itself, so that the `park` which takes it synchronizes
                // with this unpark too.
                _ => seen & !PHASE | PERMIT,
            })
        };
        // Release: pairs with the acquire of the one who takes the permit. Acquire: pairs with the
        // release in `settle`.
        let was = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, wake);
        was.is_ok_and(|seen| seen & PHASE == PARKED)
    }

    /// Ends the task: from now on unparking it has no effect.
    pub fn end(&self) {
        // An `unpark` at the same time may be overwritten: it has no effect any more. Relaxed: no
        // task reads anything by it.
        let next = self.generation() + 1;
        self.0.swap(next << PHASE_BITS | ACTIVE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosted::Hosted;

    fn state() -> State<Hosted> {
        State::new()
    }

    #[test]
    fn a_permit_that_comes_before_the_park_ends_it() {
        let state = state();
        assert!(!state.take_permit());
        assert!(!state.unpark(1), "no task to hand over");
        assert!(state.take_permit());
        assert!(!state.take_permit(), "a permit is taken once");
    }

    #[test]
    fn permits_do_not_add_up() {
        let state = state();
        assert!(!state.unpark(1));
        assert!(!state.unpark(1));
        assert!(state.take_permit());
        assert!(state.settle());
    }

    #[test]
    fn a_parked_task_is_handed_over_once() {
        let state = state();
        assert!(state.settle());
        assert!(state.unpark(1));
        assert!(!state.unpark(1), "the second one leaves a permit");
        assert!(state.take_permit());
    }

    #[test]
    fn a_permit_during_the_switch_is_consumed_by_the_settler() {
        let state = state();
        assert!(!state.unpark(1));
        assert!(!state.settle());
        assert!(!state.take_permit());
        assert!(state.settle());
    }

    #[test]
    fn a_stale_name_has_no_effect() {
        let state = state();
        state.unpark(1);
        state.end();
        assert_eq!(state.generation(), 2);
        assert!(!state.take_permit(), "a new task begins without a permit");
        assert!(state.settle());
        assert!(!state.unpark(1));
        assert!(state.unpark(2));
    }
}
