//! What stored results say over time.
//!
//! A [`Series`] is all runs of one thing on one machine: equal workload, system, build, number and kind of tasks. Its runs are
//! gathered by *label* (the commit or kernel that was measured), in the order in which the labels first appear, so that runs of
//! two labels taken in turn are each other's neighbours. Each label is a [`Line`], judged against the one before as
//! [`verdict`](crate::verdict) judges; [`Series::shifts`] looks for changes of level run by run, labels or not.

mod gather;
mod line;
mod shift;

use serde::Serialize;

use crate::Time;
use crate::environment::Environment;
use crate::record::{Mode, Subject};

pub use gather::{History, gather};
pub use line::{Against, Line, Of};
pub use shift::Shift;

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// The workload.
    pub workload: String,
    /// The system: `os`, `hosted`, `sim`.
    pub on: String,
    /// The preset of our VM; `null` on `os`.
    pub vm: Option<String>,
    /// The machine in brief: the simulated one's name and shape, else the CPUs.
    pub machine: String,
    /// What the tasks are.
    pub mode: Mode,
    /// Tasks at work together.
    pub tasks: u32,
    /// Unit of the rates.
    pub unit: String,
}

/// All runs of one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is of.
    pub key: Key,
    /// Its runs: labels in the order of their first run, those of one label as they were made.
    pub runs: Vec<Kept>,
}

/// A run of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// When it ended, if that was kept.
    pub time: Option<Time>,
    /// What was measured.
    pub label: String,
    /// The run's figure: the mean of its samples.
    pub figure: f64,
    /// Its samples; none if only the summary was kept.
    pub samples: Vec<f64>,
    /// The first seed, if chance was involved.
    pub seed: Option<u64>,
    /// The machine, unless it was simulated.
    pub machine: Option<Box<Environment>>,
    /// The file it lies in.
    pub file: String,
}

impl Key {
    /// What `subject` is a run of, on a real machine described by `machine`.
    pub fn of(subject: &Subject, machine: Option<&Environment>) -> Self {
        Self {
            workload: subject.workload.clone(),
            on: subject.on.clone(),
            vm: subject.vm.clone(),
            machine: match &subject.profile {
                Some(profile) => simulated(profile, subject.topology.as_deref()),
                None => machine.map_or("unknown machine".into(), here),
            },
            mode: subject.mode,
            tasks: subject.tasks,
            unit: subject.unit.clone(),
        }
    }

    /// Whether the two are points of one curve: equal but for the tasks.
    pub fn same_curve(&self, other: &Self) -> bool {
        let curve = |key: &Self| Self {
            mode: Mode::Processes,
            tasks: 0,
            ..key.clone()
        };
        curve(self) == curve(other)
    }

    /// Whether it ran on a simulated machine: then each sample had a machine of its own.
    pub fn simulated(&self) -> bool {
        self.on == "sim"
    }
}

/// A simulated machine: its name, and its shape if that is not its name.
fn simulated(profile: &str, topology: Option<&str>) -> String {
    match topology.filter(|&shape| shape != profile) {
        Some(shape) => format!("{profile} {shape}"),
        None => profile.into(),
    }
}

/// A real machine: its CPUs. The kernel is not part of it, as that may be what is measured.
fn here(machine: &Environment) -> String {
    let cpu = machine.cpu.as_deref().unwrap_or("unknown CPU");
    match machine.cpus {
        Some(cpus) => format!("{cpu} × {cpus}"),
        None => cpu.into(),
    }
}
