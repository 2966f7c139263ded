//! Waits for kernel locks: begins and ends brought together.

use super::StackId;
use std::collections::HashMap;

/// Flags of `contention_begin`.
const SPIN: u32 = 1;
const MUTEX: u32 = 32;

/// Waits that have not ended, by thread, the innermost last: while a thread waits, an
/// interrupt or the lock's own machinery may wait for another lock.
#[derive(Debug, Default)]
pub(crate) struct Waits(HashMap<u32, Vec<Open>>);

#[derive(Debug)]
struct Open {
    lock: u64,
    flags: u32,
    stack: StackId,
    since: u64,
    /// Time of waits within this one.
    nested: u64,
    /// Time off CPU.
    asleep: u64,
    /// Samples within.
    samples: Vec<StackId>,
}

/// A wait that has ended. A second belongs to one wait: the innermost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    pub stack: StackId,
    pub flags: u32,
    /// Its time, without waits within.
    pub own: u64,
    /// What of it was spent on a CPU.
    pub awake: u64,
}

impl Waits {
    /// A thread begins to wait; the samples of the wait that this one shows to have lost
    /// its end, if there is one.
    pub fn begin(
        &mut self,
        tid: u32,
        lock: u64,
        flags: u32,
        stack: StackId,
        since: u64,
    ) -> Option<Vec<StackId>> {
        let open = self.0.entry(tid).or_default();
        let known = open.iter().position(|one| one.lock == lock);
        // A mutex is spun for and then slept for: two begins, one end, one wait.
        if known.is_some_and(|at| open[at].flags & flags & MUTEX != 0) {
            return None;
        }
        let lost = known.map(|at| open.remove(at).samples);
        let (nested, asleep, samples) = (0, 0, Vec::new());
        open.push(Open {
            lock,
            flags,
            stack,
            since,
            nested,
            asleep,
            samples,
        });
        lost
    }

    /// A thread stops waiting: the wait, and the samples of each wait within it whose end was
    /// lost. None if it was not known to wait.
    pub fn end(&mut self, tid: u32, lock: u64, time: u64) -> Option<(Waited, Vec<Vec<StackId>>)> {
        let open = self.0.get_mut(&tid)?;
        let at = open.iter().rposition(|one| one.lock == lock)?;
        let lost: Vec<Open> = open.drain(at + 1..).collect();
        let ended = open.pop()?;
        let whole = time.saturating_sub(ended.since);
        if let Some(outer) = open.last_mut() {
            outer.nested += whole;
        }
        let lost = lost.into_iter().map(|one| one.samples).collect();
        Some((ended.at(time), lost))
    }

    /// Takes a sample of a thread, if it waits.
    pub fn sampled(&mut self, tid: u32, stack: StackId) -> bool {
        let waiting = self.0.get_mut(&tid).and_then(|open| open.last_mut());
        waiting.map(|open| open.samples.push(stack)).is_some()
    }

    /// A thread was off CPU.
    pub fn slept(&mut self, tid: u32, nanoseconds: u64) {
        if let Some(open) = self.0.get_mut(&tid).and_then(|open| open.last_mut()) {
            open.asleep += nanoseconds;
        }
    }

    /// Ends may have been lost: the samples of each wait that is open, which is forgotten.
    pub fn forget(&mut self) -> Vec<Vec<StackId>> {
        let open = self.0.drain().flat_map(|(_, open)| open);
        open.map(|one| one.samples).collect()
    }

    /// A thread is gone, and the samples of each wait it had not ended.
    pub fn exit(&mut self, tid: u32) -> Vec<Vec<StackId>> {
        let open = self.0.remove(&tid).unwrap_or_default();
        open.into_iter().map(|one| one.samples).collect()
    }

    /// Ends all waits.
    pub fn close(&mut self, time: u64) -> Vec<Waited> {
        let mut ended = Vec::new();
        for (_, mut open) in self.0.drain() {
            while let Some(inner) = open.pop() {
                if let Some(outer) = open.last_mut() {
                    outer.nested += time.saturating_sub(inner.since);
                }
                ended.push(inner.at(time));
            }
        }
        ended
    }
}

impl Open {
    fn at(&self, time: u64) -> Waited {
        let own = time.saturating_sub(self.since).saturating_sub(self.nested);
        let awake = own.saturating_sub(self.asleep);
        // A mutex's wait is one kind, spun for or not.
        let flags = match self.flags & MUTEX {
            0 => self.flags,
            _ => self.flags & !SPIN,
        };
        Waited {
            stack: self.stack,
            flags,
            own,
            awake,
        }
    }
}
