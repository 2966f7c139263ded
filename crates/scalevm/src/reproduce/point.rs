//! What one simulated run is of.

use super::Effort;
use crate::harness::{Failure, Mode, Plan};
use crate::locks::registry::{ROWS, Row};
use crate::locks::simulated as locks;
use crate::simulated::{Attribution, Simulated};
use baselines::selected::Preset;
use sim::profile::Profile;

/// What a run is of, apart from the machine and the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// mmap1 on our VM: operations a second.
    Mmap1 {
        /// How the VM is built.
        preset: Preset,
        /// Whether tasks share an address space.
        mode: Mode,
        /// How many tasks.
        tasks: usize,
    },
    /// The lock micro-benchmark: operations a second.
    Lock {
        /// The lock's name among `scalevm locks`.
        lock: &'static str,
        /// How many CPUs meet at it.
        cpus: usize,
    },
    /// One CPU that locks and unlocks: nanoseconds, the same with every seed.
    Uncontended {
        /// The lock's name.
        lock: &'static str,
    },
}

impl Point {
    /// mmap1 by processes.
    pub const fn processes(preset: Preset, tasks: usize) -> Self {
        let mode = Mode::Processes;
        Point::Mmap1 {
            preset,
            mode,
            tasks,
        }
    }

    /// CPUs it takes: what it costs to simulate, and what the machine must have.
    pub fn cpus(&self) -> usize {
        match *self {
            Point::Mmap1 { tasks, .. } => tasks,
            Point::Lock { cpus, .. } => cpus,
            Point::Uncontended { .. } => 1,
        }
    }

    /// Runs it once.
    pub fn run(&self, machine: &Profile, seed: u64, effort: &Effort) -> Result<f64, Failure> {
        match *self {
            Point::Mmap1 { preset, .. } => {
                let span = effort.span(preset);
                let (target, plan) = self.mmap1(preset, machine, seed);
                let counts = target.sample(&plan, span)?;
                Ok(counts.iter().sum::<u64>() as f64 / span.as_secs_f64())
            }
            Point::Lock { lock, cpus } => {
                let curve = locks::curve(machine, row(lock), &[cpus], &(seed..seed + 1))?;
                Ok(curve[0].throughput.median)
            }
            Point::Uncontended { lock } => locks::uncontended(machine, row(lock)),
        }
    }

    /// Where the time goes, of mmap1 with the first seed.
    pub fn attribute(&self, machine: &Profile, effort: &Effort) -> Result<Attribution, Failure> {
        let Point::Mmap1 { preset, .. } = *self else {
            return Err(Failure::Unavailable(
                "a lock's run is not attributed".into(),
            ));
        };
        let (target, plan) = self.mmap1(preset, machine, effort.first);
        target.attribute(&plan, effort.span(preset))
    }

    fn mmap1(&self, preset: Preset, machine: &Profile, seed: u64) -> (Simulated, Plan) {
        let (mode, tasks) = match *self {
            Point::Mmap1 { mode, tasks, .. } => (mode, tasks),
            _ => (Mode::Processes, self.cpus()),
        };
        let profile = machine.clone();
        let target = Simulated {
            preset,
            profile,
            seed,
        };
        let workload = workloads::find("mmap1").expect("mmap1 is a workload");
        (
            target,
            Plan {
                workload: workload.into(),
                tasks,
                mode,
                count: None,
            },
        )
    }
}

fn row(lock: &str) -> &'static Row {
    let found = ROWS.iter().find(|row| row.name == lock);
    found.expect("systems name locks that exist")
}
