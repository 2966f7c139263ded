//! How far a sweep is: a bar on stderr, on a terminal only.

use crate::harness::{Phase, Sample, Watch};
use indicatif::{ProgressBar, ProgressStyle};

/// The bar; hidden where stderr is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for `samples` samples in all.
    pub fn new(samples: u64) -> Self {
        let bar = ProgressBar::new(samples);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} samples")
            .expect("a template of known keys");
        bar.set_style(style);
        Progress { bar }
    }

    /// The next point begins.
    pub fn point(&self, label: &str, tasks: usize) {
        self.bar.set_message(format!("{label}, {tasks} tasks"));
        self.bar.tick();
    }

    /// A turn of `name` begins; it counts as a sample.
    pub fn turn(&self, name: &'static str, threads: usize) {
        self.bar.set_message(format!("{name}, {threads} threads"));
        self.bar.inc(1);
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

impl Watch for Progress {
    fn phase(&mut self, _: Phase) {}

    fn sample(&mut self, _: Phase, _: u32, _: &Sample) {
        self.bar.inc(1);
    }
}
