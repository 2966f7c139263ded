//! Times off CPU.

use super::StackId;
use crate::unwind::Word;
use std::collections::HashMap;

/// The bits of a thread state that mean it does not want to run. The bit above them means it was
/// preempted.
const NOT_RUNNABLE: i64 = 0xff;
/// A thread state without any of them.
pub(crate) const WANTS_TO_RUN: i64 = 0;

/// Threads off CPU, by their number in the root pid namespace: the only one by which the kernel
/// names the next thread.
///
/// Linux does not report every switch (6.18 was seen to leave out some from a worker thread or from
/// the idle task). A thread whose return was left out gives itself away when it goes off again or
/// exits; when it came back is then unknown, and that time off CPU is not counted.
#[derive(Debug, Default)]
pub(crate) struct Blocked(HashMap<i64, Off>);

#[derive(Debug)]
struct Off {
    tid: u32,
    preempted: bool,
    stack: StackId,
    word: Option<Word>,
    since: u64,
}

/// A finished time off CPU, including the time that the thread then waited for a CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slept {
    pub tid: u32,
    pub stack: StackId,
    pub word: Option<Word>,
    pub preempted: bool,
    pub nanoseconds: u64,
}

/// Returns true if a thread that goes off CPU in `state` does not want to run.
pub(crate) fn is_asleep(state: i64) -> bool {
    state & NOT_RUNNABLE != 0
}

impl Blocked {
    /// Records that a thread goes off CPU, and where. Returns true if its last return was not seen.
    pub fn off(
        &mut self,
        number: i64,
        tid: u32,
        state: i64,
        (stack, word): (StackId, Option<Word>),
        since: u64,
    ) -> bool {
        let preempted = !is_asleep(state);
        let off = Off {
            tid,
            preempted,
            stack,
            word,
            since,
        };
        self.0.insert(number, off).is_some()
    }

    /// Forgets a thread that is gone. Returns true if its last return was not seen.
    pub fn exit(&mut self, tid: u32) -> bool {
        let before = self.0.len();
        self.0.retain(|_, off| off.tid != tid);
        self.0.len() < before
    }

    /// Records that a thread is back; none if it was not seen to go.
    pub fn back(&mut self, number: i64, time: u64) -> Option<Slept> {
        self.0.remove(&number).map(|off| off.until(time))
    }

    /// Ends all open times.
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
            word: self.word,
            preempted: self.preempted,
            nanoseconds,
        }
    }
}
