//! Watching each access: random delays and preemptions, which CPU has touched which line, and where
//! time goes.

use super::preempt::Preempt;
use super::sampler::{Sampler, Spent};
use super::{Engine, Time};
use crate::coherence::LineId;
use std::collections::BTreeMap;

/// Random delays, which expose schedules that exact clocks would never show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// One in this many accesses is delayed.
    pub one_in: u32,
    /// The longest delay, in nanoseconds.
    pub most: u64,
}

/// How a CPU has used a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Use {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// The call stack of the first write, or otherwise of the first read.
    pub(crate) site: Vec<usize>,
}

/// The watches of each access.
#[derive(Default)]
pub(crate) struct Watch {
    /// True if anything is watched. An access reads only this if nothing is.
    is_on: bool,
    delays: Option<Delays>,
    preempt: Option<Preempt>,
    /// The lines each CPU has touched since tracing began.
    trace: Option<Vec<BTreeMap<LineId, Use>>>,
    sampler: Option<Sampler>,
}

impl Watch {
    pub(crate) fn new(delays: Option<Delays>, preempt: Option<Preempt>) -> Self {
        let watch = Watch {
            delays,
            preempt,
            ..Watch::default()
        };
        watch.noted()
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Sets `is_on` if there is something to watch.
    fn noted(self) -> Self {
        let random = self.delays.is_some() || self.preempt.is_some();
        let is_on = random || self.trace.is_some() || self.sampler.is_some();
        Watch { is_on, ..self }
    }

    /// Changes what is watched.
    fn change<R>(&mut self, change: impl FnOnce(&mut Self) -> R) -> R {
        let changed = change(self);
        *self = core::mem::take(self).noted();
        changed
    }

    /// Delays accesses from now on.
    pub(crate) fn disturb(&mut self, delays: Delays) {
        self.change(|watch| watch.delays = Some(delays));
    }

    /// Stops all delays and preemptions.
    pub(crate) fn calm(&mut self) {
        self.change(|watch| (watch.delays, watch.preempt) = (None, None));
    }

    /// Starts a new trace.
    pub(crate) fn trace(&mut self, cpus: usize) {
        self.change(|watch| watch.trace = Some(vec![BTreeMap::new(); cpus]));
    }

    /// Ends the trace; returns the lines that each CPU has touched.
    pub(crate) fn traced(&mut self) -> Vec<BTreeMap<LineId, Use>> {
        self.change(|watch| watch.trace.take()).unwrap_or_default()
    }

    /// Samples by `sampler`, or ends the sampling; returns the previous sampler.
    pub(super) fn sample(&mut self, sampler: Option<Sampler>) -> Option<Sampler> {
        self.change(|watch| core::mem::replace(&mut watch.sampler, sampler))
    }

    /// The sampler, while it is on.
    #[inline]
    pub(super) fn sampler(&mut self) -> Option<&mut Sampler> {
        self.sampler.as_mut()
    }

    /// How tasks are preempted at random, if they are.
    #[inline]
    pub(super) fn preempt(&self) -> Option<Preempt> {
        self.preempt
    }
}

impl Engine {
    #[cold]
    pub(super) fn watch_access(&mut self, line: LineId, write: bool) {
        self.charge(Spent::Working, None);
        if let Some(delays) = self.watch.delays {
            let dice = &mut self.cpu().dice;
            if dice.rand_range(0..u64::from(delays.one_in)) == 0 {
                let delay: Time = dice.rand_range(0..delays.most * 1000 + 1);
                self.cpu().clock += delay;
            }
        }
        let cpu = self.running;
        if let Some(trace) = &mut self.watch.trace {
            let used = trace[cpu].entry(line).or_default();
            if used.site.is_empty() || (write && used.writes == 0) {
                used.site = call_site();
            }
            if write {
                used.writes += 1
            } else {
                used.reads += 1
            }
        }
    }
}

/// The number of callers that are recorded.
const DEPTH: usize = 32;

/// The return addresses from here up, the nearest first.
pub(super) fn call_site() -> Vec<usize> {
    let mut frames = Vec::with_capacity(DEPTH);
    backtrace::trace(|frame| {
        frames.push(frame.ip() as usize);
        frames.len() < DEPTH
    });
    frames
}
