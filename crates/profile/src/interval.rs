//! What tasks did in an interval while they are watched.

use crate::{Hidden, Holder, Lock, Thread};
use serde::Serialize;

/// An interval. As JSON it is one line, of `kind` "interval".
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename = "interval")]
pub struct Interval {
    /// The end, in seconds since 1970.
    pub time: f64,
    /// Seconds of it.
    pub seconds: f64,
    /// Seconds that the watched threads lived, added up.
    pub lived: f64,
    /// The same without the time in which they were idle; shares of locks refer to this.
    pub active: f64,
    /// Seconds that the watched threads were on a CPU, added up.
    pub busy: f64,
    /// The parts that could not be seen.
    pub hidden: Hidden,
    /// Records that are lost.
    pub lost: u64,
    /// The locks waited for, the costliest first.
    pub locks: Vec<Lock>,
    /// The holders of these locks, where they are known, the one that most waited for first.
    pub holders: Vec<Holder>,
    /// The threads, the one that did or waited for most first.
    pub threads: Vec<Thread>,
}
