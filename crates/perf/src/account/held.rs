//! Adds up holds of `mmap_lock`.

use super::holds::{Hold, Step};
use super::{Account, Span, StackId, Tally};
use crate::event::Chain;
use perf_event_open_sys::bindings::PERF_CONTEXT_USER;
use std::collections::HashMap;
use std::mem::take;

/// The key of holds: the stack that acquired the lock, true if for writing, and true if the thread
/// is watched.
pub(crate) type HoldId = (StackId, bool, bool);

/// Holds of `mmap_lock` that watched threads waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub times: Tally,
    /// The time that watched threads waited meanwhile, in nanoseconds.
    pub waited: u64,
    /// Stacks seen during the holds, and how often.
    pub samples: HashMap<StackId, u64>,
}

impl Held {
    pub fn add(&mut self, span: Span, waited: u64) {
        self.times.add(span);
        self.waited += waited;
    }

    /// Adds the times and waits of `other`.
    pub fn add_all(&mut self, other: &Held) {
        self.times.add_all(&other.times);
        self.waited += other.waited;
    }
}

impl Account {
    /// Records holds from `time` on, or no longer.
    pub(super) fn record_holds(&mut self, on: bool, time: u64) {
        self.count_holds(time);
        self.holds_since = on.then_some(time);
        self.holds.forget();
    }

    /// Counts the time for which holds were recorded, and in which they were waited for.
    pub(super) fn count_holds(&mut self, time: u64) {
        if let Some(since) = &mut self.holds_since {
            *self.totals.recorded_holds.get_or_insert_default() += time.saturating_sub(*since);
            *since = time;
        }
        self.totals.waited_for_holds += take(&mut self.holds.waited);
    }

    /// Takes a step of the locks whose holds are recorded.
    pub(super) fn step(&mut self, time: u64, step: Step) {
        if self.holds_since.is_some() {
            for hold in self.holds.take(time, step) {
                self.held(hold);
            }
        }
    }

    /// Takes a stack of a thread that may hold a lock.
    pub(super) fn seen(&mut self, tid: u32, chain: &Chain, time: u64) {
        // Every sample comes here: none is copied while no holds are recorded.
        if self.holds_since.is_none() {
            return;
        }
        let is_kernel = |address: &&u64| **address != PERF_CONTEXT_USER;
        let kernel = chain.addresses.iter().take_while(is_kernel).copied();
        let addresses = kernel.collect();
        self.step(time, Step::Stack { tid, addresses });
    }

    pub(super) fn held(&mut self, hold: Hold) {
        let mut stack = |addresses| {
            let chain = Chain {
                addresses,
                ..Chain::default()
            };
            self.foreign_stack(hold.thread, chain)
        };
        let key = (stack(hold.acquired), hold.write, hold.is_watched);
        let during: Vec<StackId> = hold.stacks.into_iter().map(stack).collect();
        let held = self.totals.holds.entry(key).or_default();
        held.add(hold.span, hold.waited);
        for stack in during {
            *held.samples.entry(stack).or_default() += 1;
        }
    }
}
