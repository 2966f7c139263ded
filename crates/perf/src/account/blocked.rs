//! Times off CPU.

use super::{Span, StackId};
use crate::unwind::Word;
use std::collections::HashMap;

/// The bits of a thread state that mean it does not want to run. The bit above them means it was
/// preempted.
const NOT_RUNNABLE: i64 = 0xff;

/// Threads off CPU.
///
/// Where the record of a return was lost, the thread gives itself away when it goes off again or
/// exits; when it came back is then unknown, and that time off CPU is not counted.
#[derive(Debug, Default)]
pub(crate) struct Blocked(HashMap<u32, Off>);

#[derive(Debug)]
pub(crate) struct Off {
    preempted: bool,
    pub place: Place,
    since: u64,
    /// The thread that woke it, and when.
    pub woken: Option<(Waker, u64)>,
    /// How long it had been off CPU when the interval began.
    before: u64,
    /// True if the record of its return may have been lost.
    doubted: bool,
}

/// Where a thread went off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its stack; one without frames if that was not sampled.
    pub stack: StackId,
    pub is_sampled: bool,
    pub word: Option<Word>,
}

/// The thread that woke another, by its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waker {
    pub stack: StackId,
    /// True if it is watched.
    pub is_watched: bool,
}

/// A finished time off CPU, including the time that the thread then waited for a CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slept {
    pub tid: u32,
    pub place: Place,
    pub preempted: bool,
    /// When the part of the span began.
    pub since: u64,
    pub span: Span,
    /// The thread that woke it, where that was seen, and the part of the span from then on.
    pub woken: Option<(Waker, Span)>,
}

/// Returns true if a thread that goes off CPU in `state` does not want to run.
pub(crate) fn is_asleep(state: i64) -> bool {
    state & NOT_RUNNABLE != 0
}

impl Blocked {
    /// Records that a thread goes off CPU, and where. Returns true if its last return was not seen.
    pub fn off(&mut self, tid: u32, preempted: bool, place: Place, since: u64) -> bool {
        let off = Off {
            preempted,
            place,
            since,
            woken: None,
            before: 0,
            doubted: false,
        };
        self.0.insert(tid, off).is_some()
    }

    /// Returns true if a thread is asleep and has not been seen to be woken.
    pub fn sleeps(&self, tid: u32) -> bool {
        let off = self.0.get(&tid);
        off.is_some_and(|off| !off.preempted && off.woken.is_none())
    }

    /// Records that a thread that sleeps is woken.
    pub fn woken(&mut self, tid: u32, waker: Waker, time: u64) {
        if let Some(off) = self.0.get_mut(&tid) {
            off.woken = Some((waker, time));
        }
    }

    /// Forgets a thread that is gone. Returns true if its last return was not seen.
    pub fn exit(&mut self, tid: u32) -> bool {
        self.0.remove(&tid).is_some()
    }

    /// Records that a thread is back; none if it was not seen to go.
    pub fn back(&mut self, tid: u32, time: u64) -> Option<Slept> {
        self.0.remove(&tid).map(|off| off.until(tid, time, true))
    }

    /// Records that a sample saw a thread run. Returns true if the record of its return is lost. A
    /// thread that goes off CPU may be sampled before it is gone, so this needs a doubt.
    pub fn runs(&mut self, tid: u32) -> bool {
        let is_back = self.0.get(&tid).is_some_and(|off| off.doubted);
        is_back && self.exit(tid)
    }

    /// Doubts that those off CPU are, because records of returns may have been lost.
    pub fn doubt(&mut self) {
        self.0.values_mut().for_each(|off| off.doubted = true);
    }

    /// The open times, up to `time`, at which they end if `ended`.
    pub fn cut(&mut self, time: u64, ended: bool) -> Vec<Slept> {
        let mut slept = Vec::new();
        for (&tid, off) in &mut self.0 {
            let until = off.until(tid, time, ended);
            (off.since, off.before) = (time, until.span.whole);
            slept.push(until);
        }
        if ended {
            self.0.clear();
        }
        slept
    }

    /// The threads off CPU.
    pub fn open(&mut self) -> impl Iterator<Item = &mut Off> {
        self.0.values_mut()
    }
}

impl Off {
    fn until(&self, tid: u32, time: u64, ended: bool) -> Slept {
        let part = time.saturating_sub(self.since);
        let whole = self.before + part;
        let queued = |at: u64| Span {
            part: time.saturating_sub(self.since.max(at)),
            whole: time.saturating_sub(at),
            ended,
        };
        Slept {
            tid,
            place: self.place,
            preempted: self.preempted,
            since: self.since,
            span: Span { part, whole, ended },
            woken: self.woken.map(|(waker, at)| (waker, queued(at))),
        }
    }
}
