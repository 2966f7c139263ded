//! Events in the order of time, added up.

mod blocked;
mod stacks;
mod waits;

pub(crate) use stacks::{Frame, Interner, Stack};

use crate::event::{Chain, Event, Stamped, Who};
use crate::tasks::{Family, Files};
use blocked::{Blocked, Slept};
use std::collections::HashMap;
use waits::{Waited, Waits};

/// The number of a stack.
pub(crate) type StackId = u32;

/// How often, how long together and how long at worst, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub count: u64,
    pub total: u64,
    pub worst: u64,
}

impl Tally {
    pub fn add(&mut self, nanoseconds: u64) {
        self.count += 1;
        self.total += nanoseconds;
        self.worst = self.worst.max(nanoseconds);
    }
}

/// What was seen, by stack.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Samples of watched threads.
    pub samples: HashMap<StackId, u64>,
    /// Those of them that lie in no traced wait of their thread.
    pub loose: HashMap<StackId, u64>,
    /// Traced waits for kernel locks, by the flags they began with.
    pub waits: HashMap<(StackId, u32), Tally>,
    /// What of these waits was spent on a CPU, in nanoseconds.
    pub spun: HashMap<StackId, u64>,
    /// Times off CPU.
    pub asleep: HashMap<StackId, Tally>,
    /// Times off CPU that the thread did not ask for.
    pub preempted: HashMap<StackId, Tally>,
    /// Samples of threads that are not watched.
    pub foreign: u64,
    /// Samples of the recorder itself.
    pub own: u64,
    /// Records the kernel had no room for.
    pub lost: u64,
    /// Begins of waits without an end, and the reverse.
    pub unpaired: u64,
    /// How often the kernel slowed the clock down.
    pub throttled: u64,
}

/// Takes events in.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub family: Family,
    pub files: Files,
    pub stacks: Interner,
    pub totals: Totals,
    waits: Waits,
    blocked: Blocked,
}

impl Account {
    /// An account of `family`, which is in terms of `files`.
    pub fn new(family: Family, files: Files) -> Account {
        Account {
            family,
            files,
            ..Account::default()
        }
    }

    /// Takes the next event; none is older than the one before.
    pub fn take(&mut self, Stamped { time, event }: Stamped) {
        match event {
            Event::Sample { who, chain } => match self.stack(who, chain) {
                Some(stack) => self.sampled(who, stack),
                None if self.family.ignores(who.tid) => self.totals.own += 1,
                None => self.totals.foreign += 1,
            },
            Event::Begin {
                who,
                lock,
                flags,
                chain,
            } => {
                if let Some(stack) = self.stack(who, chain) {
                    let ended = self.waits.begin(who.tid, lock, flags, stack, time);
                    self.abandoned(ended);
                }
            }
            Event::End { who, lock } => {
                if self.family.watched(who).is_some() {
                    self.ended(who.tid, lock, time);
                }
            }
            Event::Switch {
                who,
                prev,
                state,
                next,
                chain,
            } => {
                // First the one that comes: it may not be the one that goes.
                if let Some(slept) = self.blocked.back(next, time) {
                    self.slept(slept);
                }
                if let Some(stack) = self.stack(who, chain) {
                    self.blocked.off(prev, who.tid, state, stack, time);
                }
            }
            Event::Lost(count) => {
                self.totals.lost += count;
                let open = self.waits.forget();
                self.abandoned(open);
            }
            Event::Throttled => self.totals.throttled += 1,
            Event::Exit { who } => {
                let left = self.waits.exit(who.tid);
                self.abandoned(left);
                self.family.follow(&event, &mut self.files);
            }
            change => self.family.follow(&change, &mut self.files),
        }
    }

    /// Ends what is still open at `time`: whoever waits then has waited until then.
    pub fn close(&mut self, time: u64) {
        for slept in self.blocked.close(time) {
            self.slept(slept);
        }
        for waited in self.waits.close(time) {
            self.waited(waited);
        }
    }

    fn stack(&mut self, who: Who, chain: Chain) -> Option<StackId> {
        let process = self.family.watched(who)?;
        Some(self.stacks.intern(process, chain))
    }

    fn sampled(&mut self, who: Who, stack: StackId) {
        *self.totals.samples.entry(stack).or_default() += 1;
        // What lies in a wait is held there until it is known that the wait was whole.
        if !self.waits.sampled(who.tid, stack) {
            *self.totals.loose.entry(stack).or_default() += 1;
        }
    }

    fn ended(&mut self, tid: u32, lock: u64, time: u64) {
        match self.waits.end(tid, lock, time) {
            Some((waited, abandoned)) => {
                self.waited(waited);
                self.abandoned(abandoned);
            }
            None => self.totals.unpaired += 1,
        }
    }

    fn waited(&mut self, waited: Waited) {
        let key = (waited.stack, waited.flags);
        self.totals.waits.entry(key).or_default().add(waited.own);
        *self.totals.spun.entry(waited.stack).or_default() += waited.awake;
    }

    /// Gives back the samples of each wait whose end is not known.
    fn abandoned(&mut self, waits: impl IntoIterator<Item = Vec<StackId>>) {
        for samples in waits {
            self.totals.unpaired += 1;
            for stack in samples {
                *self.totals.loose.entry(stack).or_default() += 1;
            }
        }
    }

    fn slept(&mut self, slept: Slept) {
        self.waits.slept(slept.tid, slept.nanoseconds);
        let by_stack = match slept.preempted {
            true => &mut self.totals.preempted,
            false => &mut self.totals.asleep,
        };
        by_stack
            .entry(slept.stack)
            .or_default()
            .add(slept.nanoseconds);
    }
}

#[cfg(test)]
mod tests;
