//! What the tasks waited for when.

use super::{Recording, seconds};
use crate::account::Doing;
use crate::locks::{Off, contended};
use profile::{Row, Timeline};
use std::collections::BTreeMap;

/// Locks that have a row of their own, at most.
const LOCKS: usize = 12;

impl Recording {
    /// The tasks' waits in slices of time: for the locks that most waited for, and the rest by
    /// kind; none if waits cannot be seen.
    pub fn timeline(&self) -> Option<Timeline> {
        if self.hidden().waits {
            return None;
        }
        let mut locks: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut others: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let timeline = &self.seen.totals.timeline;
        let waits = timeline.slices.iter();
        let waits = waits.filter(|(doing, _)| !matches!(doing, Doing::Sampled(_)));
        for (&doing, slices) in waits {
            match self.lock_of(doing) {
                Some(name) => add(locks.entry(name).or_default(), slices),
                None => add(others.entry(self.kind_of(doing)).or_default(), slices),
            }
        }
        let mut locks: Vec<Row> = rows(locks);
        locks.sort_by(|a, b| b.total().total_cmp(&a.total()));
        locks.truncate(LOCKS);
        locks.extend(rows(others));
        Some(Timeline {
            slice: seconds(timeline.width),
            rows: locks,
        })
    }

    /// The lock that a thread waits for.
    fn lock_of(&self, doing: Doing) -> Option<String> {
        match doing {
            Doing::Waiting(stack, flags) => {
                let frames = &self.seen.stacks[stack as usize].kernel;
                Some(contended(flags, frames).name)
            }
            Doing::Asleep(stack) => self.slept_for(stack, None).map(|wanted| wanted.name),
            Doing::Queued(_) | Doing::Sampled(_) => None,
        }
    }

    fn kind_of(&self, doing: Doing) -> &'static str {
        match doing {
            Doing::Sampled(_) => "[busy]",
            Doing::Queued(_) => "[waits for a CPU]",
            Doing::Asleep(stack) => match &self.off[&stack] {
                Off::Work(_) => "[idle]",
                Off::Lock(_) | Off::Other => "[blocked]",
            },
            Doing::Waiting(..) => "[waits for a lock]",
        }
    }
}

fn add(sum: &mut Vec<u64>, slices: &[u64]) {
    sum.resize(sum.len().max(slices.len()), 0);
    for (sum, &slice) in sum.iter_mut().zip(slices) {
        *sum += slice;
    }
}

fn rows<N: Into<String>>(all: BTreeMap<N, Vec<u64>>) -> Vec<Row> {
    let row = |(name, slices): (N, Vec<u64>)| Row {
        name: name.into(),
        seconds: slices.into_iter().map(seconds).collect(),
    };
    all.into_iter().map(row).collect()
}
