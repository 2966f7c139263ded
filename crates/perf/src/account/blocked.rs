//! Times off CPU.

use super::StackId;
use std::collections::HashMap;

/// The bits of a state in which a thread does not want to run. The one above them says
/// that it was preempted.
const NOT_RUNNABLE: i64 = 0xff;

/// Threads that are off CPU, by their number in the root namespace: the only one by
/// which the kernel names the thread that comes next.
#[derive(Debug, Default)]
pub(crate) struct Blocked(HashMap<i64, Off>);

#[derive(Debug)]
struct Off {
    tid: u32,
    preempted: bool,
    stack: StackId,
    since: u64,
}

/// A time off CPU that has ended; with it, what the thread then waited for a CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slept {
    pub tid: u32,
    pub stack: StackId,
    pub preempted: bool,
    pub nanoseconds: u64,
}

impl Blocked {
    /// A thread goes off CPU.
    pub fn off(&mut self, number: i64, tid: u32, state: i64, stack: StackId, since: u64) {
        let preempted = state & NOT_RUNNABLE == 0;
        self.0.insert(
            number,
            Off {
                tid,
                preempted,
                stack,
                since,
            },
        );
    }

    /// A thread is back; none if it was not seen to go.
    pub fn back(&mut self, number: i64, time: u64) -> Option<Slept> {
        self.0.remove(&number).map(|off| off.until(time))
    }

    /// Ends all times; who has died is not there any more.
    pub fn close(&mut self, time: u64) -> Vec<Slept> {
        self.0.drain().map(|(_, off)| off.until(time)).collect()
    }
}

impl Off {
    fn until(&self, time: u64) -> Slept {
        let nanoseconds = time.saturating_sub(self.since);
        Slept {
            tid: self.tid,
            stack: self.stack,
            preempted: self.preempted,
            nanoseconds,
        }
    }
}
