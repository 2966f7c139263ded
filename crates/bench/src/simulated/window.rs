//! The stretch of a run in which operations are counted.
//!
//! A task that counts steps (page_fault1: pages) ends each iteration by something that is no step
//! (it unmaps all pages). So a stretch in which it counts exactly an iteration's steps has exactly
//! one end in it, wherever it begins.

use super::run::Run;
use crate::harness::{Failure, interrupt};
use std::time::Duration;

/// Looks at the counts while the requested time passes.
const LOOKS: u64 = 64;
/// Simulated nanoseconds after which a task's iteration is not waited for any longer.
const PATIENCE: u64 = 20_000_000_000;

/// What was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Each task's operations; those of its whole iterations, if these count, for the time that the
    /// window lasted.
    pub counts: Vec<u64>,
    /// Its length.
    pub span: Duration,
    /// True if it holds what ends iterations: each task did one, or an iteration is one operation.
    pub is_whole: bool,
}

impl Window {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.counts.iter().sum::<u64>() as f64 / self.span.as_secs_f64()
    }
}

/// A task's whole iterations since the window's beginning.
#[derive(Clone, Copy, Default)]
struct Laps {
    /// Their operations.
    operations: u64,
    /// Nanoseconds until the last ended.
    until: f64,
}

impl Run {
    /// Counts for `span` nanoseconds from `from`, which is now.
    pub(super) fn count_for(&mut self, from: u64, span: u64) -> Result<Window, Failure> {
        let before = self.counts();
        self.run_to(from + span)?;
        let counts: Vec<u64> = differences(&self.counts(), &before);
        let round = self.round();
        Ok(Window {
            is_whole: round == 1 || counts.iter().all(|&count| count >= round),
            counts,
            span: Duration::from_nanos(span),
        })
    }

    /// Counts from `from`, which is now, until each task has done an iteration of `round`
    /// operations, and `span` nanoseconds have passed.
    pub(super) fn count_whole(
        &mut self,
        from: u64,
        span: u64,
        round: u64,
    ) -> Result<Window, Failure> {
        let begin = self.counts();
        let mut laps = vec![Laps::default(); begin.len()];
        let mut done = vec![0; begin.len()];
        let step = (span / LOOKS).max(1);
        let mut passed = 0;
        let is_whole = loop {
            interrupt::check()?;
            self.run_to(from + passed + step)?;
            let now = differences(&self.counts(), &begin);
            for ((laps, &now), &before) in laps.iter_mut().zip(&now).zip(&done) {
                let whole = now / round * round;
                if whole > laps.operations {
                    let share = (whole - before) as f64 / (now - before) as f64;
                    *laps = Laps {
                        operations: whole,
                        until: passed as f64 + share * step as f64,
                    };
                }
            }
            (done, passed) = (now, passed + step);
            let is_whole = laps.iter().all(|laps| laps.operations > 0);
            if passed >= span && (is_whole || passed >= PATIENCE) {
                break is_whole;
            }
        };
        let scaled = |laps: &Laps| (laps.operations as f64 * passed as f64 / laps.until).round();
        Ok(Window {
            counts: if is_whole {
                laps.iter().map(|laps| scaled(laps) as u64).collect()
            } else {
                done
            },
            span: Duration::from_nanos(passed),
            is_whole,
        })
    }

    /// Runs on from `now` until each task has done `round` operations; when that was.
    pub(super) fn pass_round(
        &mut self,
        mut now: u64,
        span: u64,
        round: u64,
    ) -> Result<u64, Failure> {
        let (step, enough) = ((span / LOOKS).max(1), now + PATIENCE);
        while now < enough && self.counts().iter().any(|&count| count < round) {
            interrupt::check()?;
            now += step;
            self.run_to(now)?;
        }
        Ok(now)
    }
}

fn differences(after: &[u64], before: &[u64]) -> Vec<u64> {
    let pairs = after.iter().zip(before);
    pairs.map(|(after, before)| after - before).collect()
}
