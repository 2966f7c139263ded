//! Results as JSON lines: one object a line; `kind` distinguishes a sample from a summary.
//!
//! A *run* is a workload at one number of tasks; it gives a `sample` line for each interval
//! measured, and finally one `summary` line, which also carries the [`Environment`]. Results are
//! rates: each count is divided by the measured length of its interval (`seconds`), because under
//! load an interval of "one second" has been seen to take 1.68. So results may be compared even if
//! their intervals differ.

mod read;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::Time;
use crate::environment::Environment;
use crate::ministat::{mean, stddev};

pub(crate) use read::line;
pub use read::{Run, parse, read, runs};

/// One line of a result file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[expect(
    clippy::large_enum_variant,
    reason = "samples are what there is most of"
)]
pub enum Record {
    /// One interval.
    Sample(Measurement),
    /// One run.
    Summary(Box<Summary>),
}

/// The measured system and workload: the same for all lines of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The workload, as `scalevm list` names it; or the processes that already ran.
    pub workload: String,
    /// The system: `os`, `hosted`, `sim`, `kernel`.
    pub on: String,
    /// The preset of scalevm's own VM; `null` on `os`.
    pub vm: Option<String>,
    /// Tasks at work together.
    pub tasks: u32,
    /// The tasks' kind.
    pub mode: Mode,
    /// The simulated machine's name; `null` on real ones.
    #[serde(default)]
    pub profile: Option<String>,
    /// The simulated machine, `sockets x cores x threads`; `null` on real ones.
    pub topology: Option<String>,
    /// On `kernel`, the guest's CPUs. On `hosted`, the threads over which scalevm's scheduler deals
    /// a larger number of tasks; absent where each task is a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// The scheduler that deals out more tasks than CPUs; absent where each task has a CPU of its
    /// own, and on `os`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The first seed, for a random workload or a simulation; each sample has the next.
    pub seed: Option<u64>,
    /// Unit of the rates; empty for processes that already ran, which have none.
    pub unit: String,
}

impl Subject {
    /// Tasks on `on`, with everything that is optional left out, and no unit.
    pub fn new(workload: &str, on: &str, tasks: u32, mode: Mode) -> Subject {
        Subject {
            workload: workload.to_owned(),
            on: on.to_owned(),
            vm: None,
            tasks,
            mode,
            profile: None,
            topology: None,
            cpus: None,
            scheduler: None,
            seed: None,
            unit: String::new(),
        }
    }

    /// Returns true if these are processes that already ran, not the tasks of a workload.
    pub fn already_ran(&self) -> bool {
        self.unit.is_empty()
    }
}

/// The kind of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Processes, each with an address space of its own.
    Processes,
    /// Threads in one address space.
    Threads,
}

/// Rates of one interval (in a sample line), or of a run's intervals (in a summary line).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The subject.
    #[serde(flatten)]
    pub subject: Subject,
    /// In a sample: its number, from 1. In a summary: the number of samples.
    pub sample: u32,
    /// In a sample: the slowest task's rate. In a summary: the lowest total.
    pub min: f64,
    /// In a sample: the fastest task's rate. In a summary: the highest total.
    pub max: f64,
    /// In a sample: the rate of all tasks together. In a summary: the sum of the samples' totals.
    pub total: f64,
    /// In a sample: the mean rate of a task. In a summary: the mean of the totals, the figure to
    /// quote.
    pub average: f64,
    /// Seconds by the clock: of the interval, or of all intervals.
    pub seconds: f64,
    /// When it ended; older lines lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

/// A run: its samples' totals in brief, and the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The totals in brief.
    #[serde(flatten)]
    pub totals: Measurement,
    /// Deviation of the totals; `null` for a single sample.
    pub stddev: Option<f64>,
    /// The name of the measured version, for a history: by default the kernel's release on `os`,
    /// else the tool's commit. Older lines lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// True if the run was cut short: then the totals cover the finished samples, and it counts in
    /// no comparison.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The tasks' bottleneck during a simulated run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<String>,
    /// The machine; `null` for a simulated run, whose result does not depend on this one.
    pub machine: Option<Environment>,
}

impl Mode {
    pub const BOTH: [Mode; 2] = [Mode::Processes, Mode::Threads];

    /// The word used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Processes => "processes",
            Mode::Threads => "threads",
        }
    }

    /// The number of tasks, out of `tasks`, that share an address space.
    pub const fn companions(self, tasks: usize) -> usize {
        match self {
            Mode::Processes => 1,
            Mode::Threads => tasks,
        }
    }

    /// `1 process`, `2 threads`.
    pub fn count(self, tasks: usize) -> String {
        match (tasks, self) {
            (1, Mode::Processes) => "1 process".into(),
            (1, Mode::Threads) => "1 thread".into(),
            _ => format!("{tasks} {}", self.name()),
        }
    }
}

impl Measurement {
    /// Sample number `sample`, from each task's operations in an interval of `seconds`. `None`
    /// without tasks or with an interval that is not positive.
    pub fn of_counts(subject: &Subject, sample: u32, counts: &[u64], seconds: f64) -> Option<Self> {
        let (fewest, most) = (counts.iter().min()?, counts.iter().max()?);
        let total = counts.iter().map(|&count| count as f64).sum::<f64>() / seconds;
        (seconds.is_finite() && seconds > 0.0).then(|| Self {
            subject: subject.clone(),
            sample,
            min: *fewest as f64 / seconds,
            max: *most as f64 / seconds,
            total,
            average: total / counts.len() as f64,
            seconds,
            time: None,
        })
    }
}

impl Summary {
    /// Sums up the samples of one run, without a label. `None` without samples.
    pub fn of(samples: &[Measurement], machine: Option<Environment>) -> Option<Self> {
        let first = samples.first()?;
        let totals: Vec<f64> = samples.iter().map(|sample| sample.total).collect();
        Some(Self {
            totals: Measurement {
                subject: first.subject.clone(),
                sample: samples.len() as u32,
                min: totals.iter().copied().fold(f64::INFINITY, f64::min),
                max: totals.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                total: totals.iter().sum(),
                average: mean(&totals),
                seconds: samples.iter().map(|sample| sample.seconds).sum(),
                time: samples.last().and_then(|sample| sample.time),
            },
            stddev: (totals.len() > 1).then(|| stddev(&totals)),
            label: None,
            interrupted: false,
            bottleneck: None,
            machine,
        })
    }
}

impl Record {
    /// The line's rates.
    pub fn measurement(&self) -> &Measurement {
        match self {
            Self::Sample(sample) => sample,
            Self::Summary(summary) => &summary.totals,
        }
    }

    /// Drops the time: a simulated result does not depend on when it was made, and neither should
    /// its line.
    pub fn timeless(mut self) -> Self {
        match &mut self {
            Self::Sample(sample) => sample.time = None,
            Self::Summary(summary) => summary.totals.time = None,
        }
        self
    }

    /// Writes the record as one line in a single call, so that lines of several writers to a pipe
    /// or terminal do not mix.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        out.write_all(&line)
    }
}
