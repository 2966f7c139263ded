//! The choices on which the protocol rests, named so that a model can break them.

use machine::{Atomic, Machine};

/// The protocol's choices. [`Standard`] is sound; the models of this crate change one choice at a
/// time and show that the checker finds it.
///
/// # Safety
/// A section keeps what a reader finds only if the choices are sound, as the defaults are.
#[doc(hidden)]
pub unsafe trait Protocol: 'static {
    /// The least distance of the global epoch from a stamp that has passed.
    const GRACE: u64 = 2;

    /// True if a wait for sections that may sleep waits for both sides.
    const BOTH_SIDES: bool = true;

    /// Stores the epoch, and makes the section visible before anything it reads.
    #[inline(always)]
    fn publish<M: Machine>(epoch: &M::AtomicU64, value: u64) {
        epoch.publish(value);
    }

    /// The stamp of callbacks, from the global epoch read after a fence and the epoch that their
    /// caller's last section recorded.
    fn stamp(global: u64, _section: u64) -> u64 {
        global
    }
}

/// The sound protocol.
#[derive(Debug)]
pub enum Standard {}

// SAFETY: the defaults.
unsafe impl Protocol for Standard {}
