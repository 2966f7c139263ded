//! Waits for kernel locks: pairs begins with ends.

use super::{Span, StackId};
use crate::locks::kind;
use profile::Kind;
use std::collections::HashMap;

/// Flags of `contention_begin`.
const SPIN: u32 = 1;
const MUTEX: u32 = 32;

/// Returns true if these are the flags of a readers-writer semaphore.
pub(super) fn is_rwsem(flags: u32) -> bool {
    matches!(kind(flags), Kind::RwsemRead | Kind::RwsemWrite)
}

/// Waits without an end so far, by thread, the innermost last: during a wait, an interrupt or the
/// lock's own machinery may wait for another lock.
#[derive(Debug, Default)]
pub(crate) struct Waits(HashMap<u32, Vec<Open>>);

#[derive(Debug)]
struct Open {
    lock: u64,
    flags: u32,
    stack: StackId,
    since: u64,
    /// Its own time when the interval began.
    before: u64,
    /// Time of waits within this one.
    nested: u64,
    /// Time off CPU.
    asleep: u64,
    /// Samples within.
    samples: Vec<StackId>,
}

/// A finished wait. Each second belongs to one wait only: the innermost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    pub stack: StackId,
    pub flags: u32,
    /// When it ended.
    pub until: u64,
    /// Its time without the waits within it.
    pub own: Span,
    /// The part of it spent on a CPU.
    pub awake: u64,
}

impl Waits {
    /// Begins a wait of a thread. Returns the samples of the earlier wait whose end must have been
    /// lost, if there is one.
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
        // A task spins for a mutex, then sleeps for it: two begins, one end, one wait.
        if known.is_some_and(|at| open[at].flags & flags & MUTEX != 0) {
            return None;
        }
        let lost = known.map(|at| open.remove(at).samples);
        let (before, nested, asleep, samples) = (0, 0, 0, Vec::new());
        open.push(Open {
            lock,
            flags,
            stack,
            since,
            before,
            nested,
            asleep,
            samples,
        });
        lost
    }

    /// Ends a wait. Returns it and the samples of each wait within it whose end was lost; none if
    /// its begin was not seen.
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
        Some((ended.at(time, true), lost))
    }

    /// Adds a sample to the wait of a thread, if it waits.
    pub fn sampled(&mut self, tid: u32, stack: StackId) -> bool {
        let waiting = self.0.get_mut(&tid).and_then(|open| open.last_mut());
        waiting.map(|open| open.samples.push(stack)).is_some()
    }

    /// Adds time off CPU to the wait of a thread; returns the wait's stack and flags.
    pub fn slept(&mut self, tid: u32, nanoseconds: u64) -> Option<(StackId, u32)> {
        let open = self.0.get_mut(&tid)?.last_mut()?;
        open.asleep += nanoseconds;
        Some((open.stack, open.flags()))
    }

    /// Forgets all open waits, because ends may have been lost; returns the samples of each.
    pub fn forget(&mut self) -> Vec<Vec<StackId>> {
        let open = self.0.drain().flat_map(|(_, open)| open);
        open.map(|one| one.samples).collect()
    }

    /// Forgets a thread that is gone; returns the samples of each wait that it had not ended.
    pub fn exit(&mut self, tid: u32) -> Vec<Vec<StackId>> {
        let open = self.0.remove(&tid).unwrap_or_default();
        open.into_iter().map(|one| one.samples).collect()
    }

    /// All waits up to `time`, at which they end if `ended`.
    pub fn cut(&mut self, time: u64, ended: bool) -> Vec<Waited> {
        let mut waited = Vec::new();
        for open in self.0.values_mut() {
            let mut within = 0;
            for wait in open.iter_mut().rev() {
                wait.nested += within;
                within = time.saturating_sub(wait.since);
                waited.push(wait.at(time, ended));
                wait.go_on(time);
            }
        }
        if ended {
            self.0.clear();
        }
        waited
    }

    /// The stacks of all waits.
    pub fn stacks(&mut self) -> impl Iterator<Item = &mut StackId> {
        self.0.values_mut().flatten().map(|open| &mut open.stack)
    }
}

impl Open {
    fn at(&self, time: u64, ended: bool) -> Waited {
        let part = time.saturating_sub(self.since).saturating_sub(self.nested);
        let whole = self.before + part;
        Waited {
            stack: self.stack,
            flags: self.flags(),
            until: time,
            own: Span { part, whole, ended },
            awake: part.saturating_sub(self.asleep),
        }
    }

    /// Begins an interval at `time`, within the wait.
    fn go_on(&mut self, time: u64) {
        self.before += time.saturating_sub(self.since).saturating_sub(self.nested);
        (self.since, self.nested, self.asleep) = (time, 0, 0);
        // Those of the last interval count as seen within a wait.
        self.samples.clear();
    }

    /// A mutex wait is of one kind, with or without spinning.
    fn flags(&self) -> u32 {
        match self.flags & MUTEX {
            0 => self.flags,
            _ => self.flags & !SPIN,
        }
    }
}
