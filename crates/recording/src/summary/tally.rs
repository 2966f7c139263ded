//! Adding up events.

use super::{Calls, Group, Holder, Span, Summary, Work};
use crate::memory::Memory;
use crate::{Birth, Event, FaultKind, Recording, Role, Thread, WaitFor, What};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most parts into which the time is divided. There are at least half as many, unless the
/// recording is very short.
const SPANS: usize = 16;

/// The length of the shortest part, in nanoseconds.
const SHORTEST: u64 = 1_000_000;

/// Adds up events as they come.
pub struct Tally {
    summary: Summary,
    memory: Memory,
    calls: BTreeMap<&'static str, Calls>,
    threads: Vec<One>,
    /// By thread that held a lock: how often, and for how many nanoseconds.
    holders: BTreeMap<u32, (u64, u64)>,
    /// The part that is not over, and the length of all.
    span: Span,
    length: u64,
}

/// One thread.
#[derive(Clone, Copy, Default)]
struct One {
    began: u64,
    /// The time of its last event.
    last: u64,
    ended: Option<u64>,
    work: Work,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            summary: Summary::default(),
            memory: Memory::default(),
            calls: BTreeMap::new(),
            threads: Vec::new(),
            holders: BTreeMap::new(),
            span: Span::default(),
            length: SHORTEST,
        }
    }
}

impl Tally {
    /// Adds an event; `threads` are those known at this point, or all.
    pub fn add(&mut self, event: &Event, threads: &[Thread]) {
        self.pass(event.at);
        self.memory.take(event, threads);
        if self.threads.len() < threads.len() {
            self.threads.resize(threads.len(), One::default());
        }
        self.summary.events += 1;
        let thread = event.thread as usize;
        let One { last, work, .. } = &mut self.threads[thread];
        *last = event.at;
        add(&mut work.computed, event.computed);
        match &event.what {
            What::Call { call, error, .. } => {
                work.calls += 1;
                self.span.calls += 1;
                let calls = self.calls.entry(call.name()).or_default();
                calls.count += 1;
                match error {
                    0 => add(&mut calls.bytes, call.length().unwrap_or(0)),
                    _ => calls.failed += 1,
                }
            }
            What::Fault { pages, kind, .. } => {
                let pages = u64::from(*pages);
                add(&mut work.faults, pages);
                add(&mut self.span.faults, pages);
                match kind {
                    FaultKind::Missing => add(&mut self.summary.missing, pages),
                    FaultKind::Protected => add(&mut self.summary.protected, pages),
                }
            }
            What::Unknown => self.summary.unknown += 1,
            What::Start { thread } | What::Fork { thread, .. } => {
                let born = &mut self.threads[*thread as usize];
                (born.began, born.last) = (event.at, event.at);
            }
            What::Exit => self.threads[thread].ended = Some(event.at),
            What::Wait {
                on, nanoseconds, ..
            } => {
                for (kind, slept) in WaitFor::ALL.iter().zip(&mut work.slept) {
                    add(slept, if kind == on { *nanoseconds } else { 0 });
                }
            }
            What::Hold { nanoseconds, .. } => {
                let (count, sum) = self.holders.entry(event.thread).or_default();
                *count += 1;
                add(sum, *nanoseconds);
            }
            What::Given { .. } | What::Exec | What::Wake { .. } => {}
        }
    }

    /// The summary, with the names in `recording`.
    pub fn finish(mut self, recording: &Recording) -> Summary {
        self.pass(recording.nanoseconds);
        self.end_span(recording.nanoseconds);
        let mut calls = Vec::from_iter(
            self.calls
                .iter()
                .map(|(&name, &calls)| Calls { name, ..calls }),
        );
        calls.sort_by_key(|calls| Reverse(calls.count));
        Summary {
            groups: self.groups(recording),
            calls,
            holders: self.holders(recording),
            ..self.summary
        }
    }

    fn groups(&mut self, recording: &Recording) -> Vec<Group> {
        self.threads.resize(recording.threads.len(), One::default());
        let work = self.threads.iter().map(|one| &one.work);
        let operations = work.map(|work| work.calls.saturating_add(work.faults));
        let mut roles = recording.roles_of(&Vec::from_iter(operations));
        let process = |thread: &u32| recording.threads[*thread as usize].process;
        let is_own = |thread: &u32| {
            let process = &recording.processes[process(thread) as usize];
            process.birth != Birth::Foreign
        };
        roles.retain(|role| role.threads.iter().all(is_own));
        let group = |role: Role| Group {
            processes: BTreeSet::from_iter(role.threads.iter().map(process)).len(),
            work: self.work(&role.threads, recording.nanoseconds),
            role,
        };
        roles.into_iter().map(group).collect()
    }

    /// What these threads did, those that have not ended up to `end`.
    fn work(&self, threads: &[u32], end: u64) -> Work {
        let mut sum = Work::default();
        for &thread in threads {
            let one = self.threads[thread as usize];
            let ended = one.ended.unwrap_or(end);
            sum.add(&Work {
                existed: ended.saturating_sub(one.began),
                quiet: ended.saturating_sub(one.last),
                ..one.work
            });
        }
        sum
    }

    fn holders(&self, recording: &Recording) -> Vec<Holder> {
        let mut holders: BTreeMap<&str, Holder> = BTreeMap::new();
        for (&thread, &(count, nanoseconds)) in &self.holders {
            let process = recording.threads[thread as usize].process;
            let name = &recording.processes[process as usize].name;
            let holder = holders.entry(name).or_default();
            holder.process.clone_from(name);
            holder.count += count;
            add(&mut holder.nanoseconds, nanoseconds);
        }
        let mut holders: Vec<Holder> = holders.into_values().collect();
        holders.sort_by_key(|holder| Reverse(holder.nanoseconds));
        holders
    }

    /// Ends the parts that are over at this time. When there are too many, each two become one.
    fn pass(&mut self, at: u64) {
        // An event at the end of a part is of this part.
        while at.saturating_sub(1) / self.length > self.summary.spans.len() as u64 {
            let until = self.length * (self.summary.spans.len() as u64 + 1);
            self.end_span(until);
            if self.summary.spans.len() == SPANS {
                let pairs = self.summary.spans.chunks(2);
                self.summary.spans = pairs.map(Span::joined).collect();
                self.length = self.length.saturating_mul(2);
            }
        }
    }

    fn end_span(&mut self, until: u64) {
        let (mappings, bytes) = self.memory.size();
        let span = std::mem::take(&mut self.span);
        self.summary.spans.push(Span {
            until,
            mappings,
            bytes,
            ..span
        });
    }
}

impl Span {
    /// Several as one.
    fn joined(spans: &[Span]) -> Span {
        let all = spans.iter().copied();
        let joined = all.reduce(|first, last| Span {
            calls: first.calls + last.calls,
            faults: first.faults.saturating_add(last.faults),
            ..last
        });
        joined.unwrap_or_default()
    }
}

impl Work {
    fn add(&mut self, more: &Work) {
        self.calls += more.calls;
        add(&mut self.faults, more.faults);
        add(&mut self.existed, more.existed);
        add(&mut self.computed, more.computed);
        add(&mut self.quiet, more.quiet);
        let slept = self.slept.iter_mut().zip(more.slept);
        slept.for_each(|(sum, more)| add(sum, more));
    }
}

/// Adds what a file may exaggerate.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
