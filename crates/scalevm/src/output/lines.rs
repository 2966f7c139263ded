//! will-it-scale's lines, word for word, so that scripts which read them go on
//! working. The numbers are operations a second over the measured interval.

use super::progress::Progress;
use bench::{Outcome, Phase, Sample, Watch};

/// Prints as the measurement goes.
pub struct Lines<'a> {
    description: &'static str,
    progress: &'a Progress,
}

impl<'a> Lines<'a> {
    /// For a workload with this description; prints while `progress` is out of the way.
    pub fn new(description: &'static str, progress: &'a Progress) -> Self {
        Lines {
            description,
            progress,
        }
    }

    /// The last line; none if no sample was finished.
    pub fn average(&self, outcome: &Outcome) {
        if let Some(average) = outcome.whole_average() {
            println!("average:{average}");
        }
    }

    /// Of simulated runs, whose spread is that of the seeds.
    pub fn spread(&self, outcome: &Outcome) {
        if let Some([low, median, high]) = outcome.spread() {
            println!("median:{median:.0} low:{low:.0} high:{high:.0}");
        }
    }
}

impl Watch for Lines<'_> {
    fn phase(&mut self, phase: Phase) {
        self.progress.aside(|| match phase {
            Phase::Warmup => {
                println!("testcase:{}", self.description);
                println!("warmup");
            }
            Phase::Measurement => println!("measurement"),
        });
    }

    fn sample(&mut self, _: Phase, _: u32, sample: &Sample) {
        self.progress.aside(|| {
            println!(
                "min:{:.0} max:{:.0} total:{:.0}",
                sample.min, sample.max, sample.total
            );
        });
    }
}
