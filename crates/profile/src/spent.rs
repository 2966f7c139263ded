//! How tasks spent their time.

use serde::{Deserialize, Serialize};

/// How the tasks spent their time, in seconds. Together the fields are all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// On a CPU, other than spinning for locks.
    pub work: f64,
    /// Spinning or blocked for locks.
    pub locks: f64,
    /// Blocked for a device, memory, or another task that makes room.
    pub blocked: f64,
    /// Ready to run, but without a CPU.
    pub queued: f64,
    /// Without anything to do.
    pub idle: f64,
    /// On a CPU that the hypervisor gave to another machine meanwhile.
    pub stolen: f64,
    /// Not recorded.
    pub unseen: f64,
}

impl Spent {
    /// The parts that are more than `least`, in words, each with its seconds.
    pub fn parts(&self, least: f64) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("works", self.work),
            ("waits for locks", self.locks),
            ("is blocked", self.blocked),
            ("waits for a CPU", self.queued),
            ("is idle", self.idle),
            ("is stolen", self.stolen),
            ("is not seen", self.unseen),
        ];
        all.into_iter().filter(move |&(_, seconds)| seconds > least)
    }
}
