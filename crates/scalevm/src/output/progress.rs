//! How far a sweep or a comparison is: a bar on stderr, on a terminal only.

use crate::harness::{Phase, Sample, Watch};
use indicatif::{ProgressBar, ProgressStyle};

/// The bar; hidden where stderr is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for `total` steps, each a `unit`, in all.
    pub fn new(total: u64, unit: &str) -> Self {
        let bar = ProgressBar::new(total);
        let template = format!("{{msg}} {{wide_bar}} {{pos}}/{{len}} {unit}");
        let style = ProgressStyle::with_template(&template).expect("a template of known keys");
        bar.set_style(style);
        Progress { bar }
    }

    /// The next point begins.
    pub fn point(&self, label: &str) {
        self.bar.set_message(label.to_owned());
        self.bar.tick();
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// So many steps are done.
    pub fn at(&self, steps: u64) {
        self.bar.set_position(steps);
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
        self.step();
    }
}
