//! Stored results over time.
//!
//! A [`Series`] holds all runs of one subject on one machine: equal workload, system, build, number
//! and kind of tasks. Its runs are grouped by *label* (the commit or kernel measured), in the order
//! in which labels first appear, so that two labels whose runs took turns are neighbours. Each
//! label is a [`Line`], compared with the previous one as [`verdict`](crate::verdict) does;
//! [`Series::shifts`] looks for changes of level run by run, regardless of labels.

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

/// The subject of a series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    pub workload: String,
    /// The system: `os`, `hosted`, `sim`.
    pub on: String,
    /// The preset of scalevm's own VM; `null` on `os`.
    pub vm: Option<String>,
    /// The machine in brief: a simulated machine's name and shape, or the CPUs.
    pub machine: String,
    /// The tasks' kind.
    pub mode: Mode,
    /// Tasks at work together.
    pub tasks: u32,
    /// Unit of the rates.
    pub unit: String,
}

/// All runs of one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The subject.
    pub key: Key,
    /// Its runs: labels in the order of their first run, the runs of one label in order of time.
    pub runs: Vec<Kept>,
}

/// A run of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// When it ended, if recorded.
    pub time: Option<Time>,
    /// The build or kernel measured.
    pub label: String,
    /// The mean of its samples.
    pub figure: f64,
    /// Its samples; empty if only the summary was kept.
    pub samples: Vec<f64>,
    /// The first seed, for a random workload or a simulation.
    pub seed: Option<u64>,
    /// The machine, unless simulated.
    pub machine: Option<Box<Environment>>,
    /// The file that holds it.
    pub file: String,
}

impl Key {
    /// The subject of a run, on a real machine described by `machine`.
    pub fn of(subject: &Subject, machine: Option<&Environment>) -> Self {
        Self {
            workload: subject.workload.clone(),
            on: subject.on.clone(),
            vm: subject.vm.clone(),
            machine: match &subject.profile {
                Some(profile) => simulated(profile, subject.topology.as_deref()),
                None => {
                    let here = machine.map_or("unknown machine".into(), here);
                    match subject.cpus {
                        Some(cpus) => format!("{here}, {cpus} hosted CPUs"),
                        None => here,
                    }
                }
            },
            mode: subject.mode,
            tasks: subject.tasks,
            unit: subject.unit.clone(),
        }
    }

    /// Returns true if both are points of one curve: equal except for the number of tasks.
    pub fn same_curve(&self, other: &Self) -> bool {
        let curve = |key: &Self| Self {
            mode: Mode::Processes,
            tasks: 0,
            ..key.clone()
        };
        curve(self) == curve(other)
    }

    /// Returns true if it ran on a simulated machine, so that each sample had a machine of its own.
    pub fn simulated(&self) -> bool {
        self.on == "sim"
    }
}

/// A simulated machine: its name, and its shape unless that is the name.
fn simulated(profile: &str, topology: Option<&str>) -> String {
    match topology.filter(|&shape| shape != profile) {
        Some(shape) => format!("{profile} {shape}"),
        None => profile.into(),
    }
}

/// A real machine: its CPUs. The kernel is not part of it, because it may be the measured system.
fn here(machine: &Environment) -> String {
    let cpu = machine.cpu.as_deref().unwrap_or("unknown CPU");
    match machine.cpus {
        Some(cpus) => format!("{cpu} × {cpus}"),
        None => cpu.into(),
    }
}
