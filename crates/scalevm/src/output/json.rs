//! Results as JSON, one object a line.

use crate::cli::On;
use crate::harness::{Mode, Outcome, Phase, Plan, Sample, Watch};
use crate::locks::Figures;
use crate::os::places;
use crate::output::progress::Progress;
use serde::Serialize;

/// What was measured; the same in each line of a measurement.
#[derive(Clone, Serialize)]
pub struct Subject {
    workload: &'static str,
    on: &'static str,
    vm: Option<String>,
    tasks: usize,
    mode: &'static str,
    topology: Option<String>,
    /// Only simulated machines have one.
    seed: Option<u64>,
}

impl Subject {
    /// Describes `plan` on a system.
    pub fn new(plan: &Plan, on: On, vm: Option<&str>) -> Self {
        Subject {
            workload: plan.workload.name,
            on: on.entry().name,
            vm: (on == On::Hosted).then(|| vm.unwrap_or("default").to_owned()),
            tasks: plan.tasks,
            mode: Mode::name(plan.mode),
            topology: places::cores().ok().map(|cores| places::shape(&cores)),
            seed: None,
        }
    }
}

/// One line.
#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    #[serde(flatten)]
    subject: &'a Subject,
    #[serde(flatten)]
    numbers: Numbers,
    unit: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Numbers {
    Sample {
        sample: u32,
        seconds: f64,
        min: f64,
        max: f64,
        total: f64,
    },
    Summary {
        samples: usize,
        /// Of the samples' totals, like the others.
        min: Option<f64>,
        max: Option<f64>,
        average: Option<f64>,
        stddev: Option<f64>,
        interrupted: bool,
    },
}

fn print(kind: &'static str, subject: &Subject, numbers: Numbers) {
    let unit = "operations/s";
    let record = Record {
        kind,
        subject,
        numbers,
        unit,
    };
    let line = serde_json::to_string(&record).expect("numbers and strings always serialize");
    println!("{line}");
}

/// Prints the samples that count as they come.
pub struct Samples<'a> {
    subject: &'a Subject,
    progress: Option<&'a mut Progress>,
}

impl<'a> Samples<'a> {
    /// Prints only.
    pub fn new(subject: &'a Subject) -> Self {
        let progress = None;
        Samples { subject, progress }
    }

    /// Prints and moves `progress` on.
    pub fn with_progress(subject: &'a Subject, progress: &'a mut Progress) -> Self {
        let progress = Some(progress);
        Samples { subject, progress }
    }
}

impl Watch for Samples<'_> {
    fn phase(&mut self, _: Phase) {}

    fn sample(&mut self, phase: Phase, index: u32, sample: &Sample) {
        if let Some(progress) = &mut self.progress {
            progress.sample(phase, index, sample);
        }
        if phase == Phase::Measurement {
            let &Sample {
                min,
                max,
                total,
                seconds,
            } = sample;
            let numbers = Numbers::Sample {
                sample: index,
                seconds,
                min,
                max,
                total,
            };
            let print = || print("sample", self.subject, numbers);
            match &self.progress {
                Some(progress) => progress.aside(print),
                None => print(),
            }
        }
    }
}

/// Prints the line that ends a measurement.
pub fn print_summary(subject: &Subject, outcome: &Outcome) {
    let totals = || outcome.samples.iter().map(|sample| sample.total);
    let numbers = Numbers::Summary {
        samples: outcome.samples.len(),
        min: totals().reduce(f64::min),
        max: totals().reduce(f64::max),
        average: outcome.average(),
        stddev: outcome.stddev(),
        interrupted: outcome.interrupted,
    };
    print("summary", subject, numbers);
}

/// One lock, one line.
#[derive(Serialize)]
struct Lock<'a> {
    kind: &'static str,
    name: &'static str,
    about: &'static str,
    group: &'static str,
    ours: bool,
    /// Null for what is not one object.
    bytes: Option<usize>,
    uncontended_ns: Option<f64>,
    contended: Vec<Contended>,
    topology: Option<&'a str>,
    unit: &'static str,
}

#[derive(Serialize)]
struct Contended {
    threads: usize,
    /// Of all threads: median of rounds.
    ops_per_second: f64,
    /// Of the slowest and the fastest thread.
    min: f64,
    max: f64,
    /// In all rounds.
    operations: u64,
    seconds: f64,
    slow_lock: Option<u64>,
    slow_unlock: Option<u64>,
}

/// Prints what was measured of a lock.
pub fn print_lock(figures: &Figures) {
    let contended = figures.contended.iter().map(|contended| Contended {
        threads: contended.threads,
        ops_per_second: contended.rate,
        min: contended.min,
        max: contended.max,
        operations: contended.operations,
        seconds: contended.seconds,
        slow_lock: contended.slow_paths.map(|slow| slow.slow_lock),
        slow_unlock: contended.slow_paths.map(|slow| slow.slow_unlock),
    });
    let topology = places::cores().ok().map(|cores| places::shape(&cores));
    let row = figures.row;
    let record = Lock {
        kind: "lock",
        name: row.name,
        about: row.about,
        group: row.group.name(),
        ours: row.ours,
        bytes: row.bytes,
        uncontended_ns: figures.alone,
        contended: contended.collect(),
        topology: topology.as_deref(),
        unit: "operations/s",
    };
    let line = serde_json::to_string(&record).expect("numbers and strings always serialize");
    println!("{line}");
}
