//! Times off CPU that another thread was seen to end.

use super::Tally;

/// Times off CPU that ended with a wake-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Woken {
    /// All of these times.
    pub slept: Tally,
    /// Their last parts: from the wake-up until the thread was on a CPU.
    pub queued: Tally,
}

impl Woken {
    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Woken) {
        self.slept.add_all(&other.slept);
        self.queued.add_all(&other.queued);
    }
}
