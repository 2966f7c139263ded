//! The points on which the protocol rests, named so that a checker can break them.

use machine::{Atomic, Machine, Ordering};

/// What makes the protocol sound. [`Standard`] is; the models of this crate
/// change one point at a time and show that the change is caught.
#[doc(hidden)]
pub trait Protocol: 'static {
    /// How far the global epoch must be from a stamp that has passed.
    const GRACE: u64 = 2;

    /// How an exit is stored.
    const EXIT: Ordering = Ordering::Release;

    /// How an entry is stored.
    const ENTRY: Ordering = Ordering::Release;

    /// Stores the epoch, and makes the section visible before anything it reads.
    #[inline(always)]
    fn publish<M: Machine>(epoch: &M::AtomicU64, value: u64) {
        epoch.publish(value);
    }

    /// The stamp of callbacks, from the global epoch read after a fence and the
    /// epoch their caller's last section recorded.
    fn stamp(global: u64, _section: u64) -> u64 {
        global
    }
}

/// The sound protocol.
pub enum Standard {}

impl Protocol for Standard {}
