//! The progress of a measurement, and the time that is left: a bar on stderr, on a terminal only.

use super::time;
use bench::{Phase, Sample, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The bar; hidden where stderr is not a terminal.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// Work in all. A step of a point with many simulated tasks is more work than one of a point
    /// with few.
    work: u64,
    /// Work done.
    done: AtomicU64,
}

impl Progress {
    /// A bar for `total` steps, each a `unit`, in all.
    pub fn new(total: u64, unit: &str) -> Self {
        Self::weighted(total, unit, total)
    }

    /// A bar of `total` steps that differ, and are `work` units of work in all.
    pub fn weighted(total: u64, unit: &str, work: u64) -> Self {
        let bar = ProgressBar::new(total);
        let template = format!("{{msg}} {{wide_bar}} {{pos}}/{{len}} {unit}{{prefix}}");
        let style = ProgressStyle::with_template(&template).expect("a template of known keys");
        bar.set_style(style);
        Progress {
            bar,
            began: Instant::now(),
            work,
            done: AtomicU64::new(0),
        }
    }

    /// No bar.
    pub fn none() -> Self {
        let none = Progress::new(0, "");
        none.bar.set_draw_target(ProgressDrawTarget::hidden());
        none
    }

    /// The next point begins.
    pub fn point(&self, label: &str) {
        self.bar.set_message(label.to_owned());
        self.bar.tick();
    }

    /// A step is done, where all are the same work.
    pub fn step(&self) {
        self.worked(1);
    }

    /// A step is done, which was `work` units of work.
    pub fn worked(&self, work: u64) {
        self.bar.inc(1);
        self.add(work);
    }

    /// Sets the number of steps done, where all are the same work.
    pub fn at(&self, steps: u64) {
        self.bar.set_position(steps);
        self.add(steps.saturating_sub(self.done.load(Relaxed)));
    }

    fn add(&self, work: u64) {
        // Relaxed: a figure for people, which needs no order.
        let done = self.done.fetch_add(work, Relaxed) + work;
        let left = left(self.began.elapsed(), done, self.work);
        let text = left.map(|left| format!(", about {} left", time(left.as_secs_f64())));
        self.bar.set_prefix(text.unwrap_or_default());
    }

    /// Prints a line on stdout while the bar is out of the way.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar of its own for `total` steps.
pub fn bar(total: u64, unit: &str) -> Box<dyn bench::Progress> {
    Box::new(Progress::new(total, unit))
}

impl bench::Progress for Progress {
    fn point(&self, label: &str) {
        self.point(label);
    }

    fn worked(&self, work: u64) {
        self.worked(work);
    }

    fn finish(&self) {
        self.finish();
    }
}

impl Watch for &Progress {
    fn phase(&mut self, _: Phase) {}

    fn sample(&mut self, _: Phase, _: u32, _: &Sample) {
        self.step();
    }
}

/// The time that the rest takes if work goes on as it did; none where that is not known, or hardly
/// a second.
fn left(elapsed: Duration, done: u64, all: u64) -> Option<Duration> {
    let rest = all.checked_sub(done).filter(|_| done > 0)?;
    let left = elapsed.as_secs_f64() * rest as f64 / done as f64;
    // Tenths would pretend to know.
    (left >= 1.0).then(|| Duration::from_secs_f64(left.round()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_by_work_and_not_by_steps() {
        let second = Duration::from_secs(1);
        assert_eq!(left(second, 0, 10), None);
        assert_eq!(left(second, 10, 10), None);
        assert_eq!(left(4 * second, 2, 8), Some(12 * second));
        // The first of two points has one task and the second has 96.
        let progress = Progress::weighted(10, "samples", 5 + 5 * 96);
        (0..5).for_each(|_| progress.step());
        progress.worked(96);
        assert_eq!((progress.done.load(Relaxed), progress.work), (101, 485));
        assert_eq!(left(101 * second, 101, 485), Some(384 * second));
        assert_eq!(left(second, 12, 10), None, "more than was planned");
    }
}
