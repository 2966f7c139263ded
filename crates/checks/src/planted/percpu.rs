//! Pins that are dropped too early.

use crate::races::scenarios::percpu::Count;
use sim::Pin;

/// The pin only serves to find the CPU's word: another task may run there between load and store.
pub enum EarlyUnpin {}

impl Count for EarlyUnpin {
    type Kept = ();

    fn keep(_pin: Pin) {}
}
