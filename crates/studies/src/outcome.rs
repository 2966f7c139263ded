//! The results of one run.

use bench::Times;
use bench::simulated::{Attribution, Seen};
use std::time::Duration;

/// The results of one run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The value that its point measures: of a workload, operations a second of all tasks together.
    pub value: f64,
    /// Of a run with an end, its times, and how many operations it did.
    pub times: Option<(Times, u64)>,
    /// Of a watched run, where the time went.
    pub attribution: Option<Attribution>,
    /// Other values, by name: of a workload that was counted, the slowest task's rate as `least`
    /// and the fastest's as `most`, in operations a second.
    pub others: Vec<(&'static str, f64)>,
}

impl Outcome {
    /// An outcome with one number.
    pub fn of(value: f64) -> Self {
        Outcome {
            value,
            ..Outcome::default()
        }
    }

    /// Adds another value by name.
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        self.others.push((name, value));
        self
    }

    /// Of tasks that did so much in `span`.
    pub fn counted(tasks: &[u64], span: Duration) -> Self {
        let rate = |count: u64| count as f64 / span.as_secs_f64();
        let least = tasks.iter().min().map_or(0.0, |&least| rate(least));
        let most = tasks.iter().max().map_or(0.0, |&most| rate(most));
        Outcome::of(rate(tasks.iter().sum()))
            .with("least", least)
            .with("most", most)
    }

    /// Of a run that did `count` operations to its end.
    pub fn completed(count: u64, times: Times) -> Self {
        let rate = count as f64 / times.real.as_secs_f64().max(1e-9);
        Outcome {
            times: Some((times, count)),
            ..Outcome::of(rate)
        }
    }

    /// Of a watched run, over `span` if it had no end of its own.
    pub fn seen(seen: Seen, span: Duration) -> Self {
        let outcome = match seen.times {
            Some(times) => Outcome::completed(seen.done(), times),
            None => Outcome::of(seen.done() as f64 / span.as_secs_f64()),
        };
        Outcome {
            attribution: Some(seen.attribution),
            ..outcome
        }
    }

    /// Seconds from the beginning to the end.
    pub fn real(&self) -> Option<f64> {
        Some(self.times?.0.real.as_secs_f64())
    }

    /// Seconds of all tasks outside of the kernel, for one operation.
    pub fn user(&self) -> Option<f64> {
        self.each(|times| times.user)
    }

    /// Seconds of all tasks in the kernel, for one operation.
    pub fn sys(&self) -> Option<f64> {
        self.each(|times| times.sys)
    }

    fn each(&self, part: fn(&Times) -> Duration) -> Option<f64> {
        let (times, count) = self.times.as_ref()?;
        Some(part(times).as_secs_f64() / (*count).max(1) as f64)
    }

    /// The part of the tasks' time that they waited for locks of classes whose names begin with
    /// `class`; of the locks most waited for (see [`Attribution`]). A wait is counted when it ends:
    /// a run with jobs tells all.
    pub fn waiting(&self, class: &str) -> Option<f64> {
        let locks = self.attribution.as_ref()?.locks.iter();
        let named = locks.filter(|lock| lock.what.starts_with(class));
        // From 0: the sum of none would be -0.
        Some(named.fold(0.0, |sum, lock| sum + lock.wait))
    }

    /// The bottleneck, in a sentence.
    pub fn bottleneck(&self) -> Option<String> {
        Some(self.attribution.as_ref()?.bottleneck())
    }

    /// The other value of this name.
    pub fn other(&self, name: &str) -> Option<f64> {
        let found = self.others.iter().find(|(known, _)| *known == name);
        found.map(|&(_, value)| value)
    }
}
