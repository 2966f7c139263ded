//! The subject of one simulated run.

use super::{Effort, Outcome};
use baselines::Preset;
use bench::simulated::Simulated;
use bench::{Failure, Mode, Plan, Target};
use lockbench::registry::{ROWS, Row};
use lockbench::simulated as locks;
use sim::profile::MachineProfile;

/// The subject of a run, apart from the machine and the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A workload on scalevm's VM: operations a second.
    Work(Work),
    /// The lock micro-benchmark: operations a second.
    Lock {
        /// The lock's name among `scalevm locks`.
        lock: &'static str,
        /// The number of CPUs that contend for it.
        cpus: usize,
    },
    /// One CPU that locks and unlocks: nanoseconds, the same with every seed.
    Uncontended {
        /// The lock's name.
        lock: &'static str,
    },
    /// A run that is of no workload.
    Probe(Probe),
}

/// A workload on scalevm's VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its name.
    pub workload: &'static str,
    /// How the VM is built.
    pub preset: Preset,
    /// True if tasks share an address space.
    pub mode: Mode,
    /// The number of tasks.
    pub tasks: usize,
    /// CPUs that the machine must have; a scheduler deals out more tasks than CPUs.
    pub cpus: usize,
    /// Operations of each task, after which the run is over; if not said, it lasts as long as the
    /// effort wants.
    pub jobs: Option<u64>,
    /// True if the run records where the time goes.
    pub watched: bool,
}

/// A run that is of no workload.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The quantity that it measures. Together with `preset` and `size` it identifies the run:
    /// probes with all three equal give the same.
    pub name: &'static str,
    /// How the VM is built.
    pub preset: Preset,
    /// The size of what it measures.
    pub size: usize,
    /// CPUs it takes.
    pub cpus: usize,
    /// True if one run is enough, with one seed on the machine itself.
    pub once: bool,
    /// Does the run with a seed.
    pub run: Run,
}

type Run = fn(&Probe, &MachineProfile, u64, &Effort) -> Result<Outcome, Failure>;

impl Probe {
    /// A probe whose size is its number of CPUs, run with each seed.
    pub const fn new(name: &'static str, preset: Preset, cpus: usize, run: Run) -> Self {
        Probe {
            name,
            preset,
            size: cpus,
            cpus,
            once: false,
            run,
        }
    }

    /// This probe with another size.
    pub const fn of(self, size: usize) -> Self {
        Probe { size, ..self }
    }

    /// This probe with one run only.
    pub const fn once(self) -> Self {
        Probe { once: true, ..self }
    }
}

impl PartialEq for Probe {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.preset, self.size) == (other.name, other.preset, other.size)
    }
}

impl Eq for Probe {}

impl From<Work> for Point {
    fn from(work: Work) -> Self {
        Point::Work(work)
    }
}

impl From<Probe> for Point {
    fn from(probe: Probe) -> Self {
        Point::Probe(probe)
    }
}

impl Work {
    /// A workload by processes, each with its own address space.
    pub const fn processes(workload: &'static str, preset: Preset, tasks: usize) -> Self {
        Work {
            workload,
            preset,
            mode: Mode::Processes,
            tasks,
            cpus: tasks,
            jobs: None,
            watched: false,
        }
    }

    /// A workload by threads of one process.
    pub const fn threads(workload: &'static str, preset: Preset, tasks: usize) -> Self {
        let mode = Mode::Threads;
        Work {
            mode,
            ..Work::processes(workload, preset, tasks)
        }
    }

    /// This workload on a machine of `cpus` CPUs, which are fewer than the tasks.
    pub const fn over(self, cpus: usize) -> Self {
        Work { cpus, ..self }
    }

    /// This workload until each task has done `each` operations: then the time taken is known.
    pub const fn jobs(self, each: u64) -> Self {
        Work {
            jobs: Some(each),
            ..self
        }
    }

    /// This workload, with a record of where the time goes.
    pub const fn watched(self) -> Self {
        Work {
            watched: true,
            ..self
        }
    }

    /// The system it runs on, and the plan.
    pub fn on(&self, machine: &MachineProfile, seed: u64) -> Result<(Simulated, Plan), Failure> {
        let target = Simulated::new(self.preset, machine.clone(), seed);
        let workload = workloads::find(self.workload);
        let unknown = || Failure::Unavailable(format!("unknown workload {}", self.workload));
        let plan = Plan {
            workload: workload.ok_or_else(unknown)?.into(),
            tasks: self.tasks,
            mode: self.mode,
            count: self.jobs.map(|each| each * self.tasks as u64),
        };
        Ok((target, plan))
    }

    fn run(
        &self,
        machine: &MachineProfile,
        seed: u64,
        effort: &Effort,
    ) -> Result<Outcome, Failure> {
        let (target, plan) = self.on(machine, seed)?;
        let span = effort.span(self.preset);
        match (self.watched, plan.count) {
            (true, _) => Ok(Outcome::seen(target.observe(&plan, span)?, span)),
            (false, Some(count)) => Ok(Outcome::completed(count, target.complete(&plan, 0)?)),
            (false, None) => {
                let window = target.sample(&plan, span)?;
                Ok(Outcome::counted(&window.counts, window.span))
            }
        }
    }
}

impl Point {
    /// The CPUs that it needs: its cost in the simulation, and the least that the machine must
    /// have.
    pub fn cpus(&self) -> usize {
        match *self {
            Point::Work(work) => work.cpus,
            Point::Lock { cpus, .. } => cpus,
            Point::Uncontended { .. } => 1,
            Point::Probe(probe) => probe.cpus,
        }
    }

    /// Returns true if there is one run of it, with one seed on the machine itself.
    pub fn is_single(&self) -> bool {
        match *self {
            Point::Work(work) => work.watched,
            Point::Probe(probe) => probe.once,
            _ => false,
        }
    }

    /// Returns true if a run takes long: it goes to its end, however long that takes.
    pub fn is_long(&self) -> bool {
        matches!(self, Point::Work(work) if work.jobs.is_some())
    }

    /// Runs it once.
    pub fn run(
        &self,
        machine: &MachineProfile,
        seed: u64,
        effort: &Effort,
    ) -> Result<Outcome, Failure> {
        match *self {
            Point::Work(work) => work.run(machine, seed, effort),
            Point::Lock { lock, cpus } => {
                let load = locks::Load::default();
                let curve = locks::curve(machine, row(lock), &load, &[cpus], &(seed..seed + 1))?;
                Ok(Outcome::of(curve[0].throughput.median))
            }
            Point::Uncontended { lock } => locks::uncontended(machine, row(lock)).map(Outcome::of),
            Point::Probe(probe) => (probe.run)(&probe, machine, seed, effort),
        }
    }
}

fn row(lock: &str) -> &'static Row {
    let found = ROWS.iter().find(|row| row.name == lock);
    found.expect("systems name locks that exist")
}
