//! The tables of `top`: locks above, threads or processes below.

mod holders;
mod lines;
pub mod prometheus;
mod tasks;

use holders::Held;
use profile::{Interval, Lock};
use std::cmp::Ordering;
use tasks::Task;

/// Locks for which fewer threads waited at a time are not shown.
const SHOWN: f64 = 0.001;

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Share,
    Waits,
    P99,
    Name,
}

/// What is shown, and how.
pub struct View {
    /// The watched processes, in words.
    whom: String,
    pub sort: Sort,
    /// True if the threads of a process are one row.
    pub by_process: bool,
    /// True if the tables stay as they are.
    pub frozen: bool,
    /// The last interval; none before the first has ended.
    shown: Option<Interval>,
    held: Held,
}

/// The size of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

impl View {
    pub fn new(whom: &str, by_process: bool) -> View {
        View {
            whom: whom.to_owned(),
            sort: Sort::Share,
            by_process,
            frozen: false,
            shown: None,
            held: Held::default(),
        }
    }

    /// Shows the next interval, unless the view is frozen.
    pub fn take(&mut self, interval: Interval) {
        self.held.take(&interval.holders);
        if !self.frozen || self.shown.is_none() {
            self.shown = Some(interval);
        }
    }

    /// The locks in order.
    fn locks<'a>(&self, interval: &'a Interval) -> Vec<&'a Lock> {
        let matters = |lock: &&Lock| lock.wait + lock.spin >= SHOWN * interval.seconds;
        let mut locks = Vec::from_iter(interval.locks.iter().filter(matters));
        // They come by share, and those that are equal keep that order.
        match self.sort {
            Sort::Share => {}
            Sort::Waits => locks.sort_by_key(|lock| std::cmp::Reverse(lock.contentions)),
            Sort::P99 => locks.sort_by(|a, b| descending(a.p99(), b.p99())),
            Sort::Name => locks.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        locks
    }

    /// The threads or processes in order.
    fn tasks(&self, interval: &Interval) -> Vec<Task> {
        let mut tasks = match self.by_process {
            true => tasks::processes(&interval.threads),
            false => tasks::threads(&interval.threads),
        };
        if self.sort == Sort::Name {
            tasks.sort_by(|a, b| a.name.cmp(&b.name));
        }
        tasks
    }
}

fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    b.unwrap_or(0.0).total_cmp(&a.unwrap_or(0.0))
}

#[cfg(test)]
mod tests;
