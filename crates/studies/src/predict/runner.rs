//! The simulated runs of one curve.

use super::Setup;
use super::mapping::StandIn;
use super::work::Work;
use crate::published::Curve;
use crate::row::Spread;
use bench::Failure;
use bench::simulated::Mechanism;
use lockbench::Row;
use lockbench::simulated::{Load, curve, fitted};
use sim::profile::MachineProfile;
use std::ops::Range;

/// What runs in place of a kernel, with a time that can be fitted.
#[derive(Clone)]
pub struct Runner {
    what: What,
    seeds: Range<u64>,
}

#[derive(Clone)]
enum What {
    Work(Work),
    Lock(Meeting),
}

impl Runner {
    /// The runs of a curve, each with each of `seeds`.
    pub fn new(setup: &Setup, seeds: Range<u64>) -> Result<Self, Failure> {
        let what = match setup.before {
            StandIn::Vm(preset, setting) => {
                let Curve { workload, mode, .. } = setup.curve;
                let unknown = || Failure::Unavailable(format!("unknown workload {workload}"));
                let (job, build) = (setup.job.ok_or_else(unknown)?, (preset, setting));
                What::Work(Work::new(job, *mode, build, &setup.machine, seeds.start)?)
            }
            StandIn::Lock(lock, load) => What::Lock(Meeting {
                lock,
                machine: setup.machine.clone(),
                load,
            }),
        };
        Ok(Runner { what, seeds })
    }

    /// This runner with another stand-in for the kernel, and its fitted time.
    pub fn changed(&self, stand_in: StandIn) -> Result<Self, Failure> {
        let what = match (&self.what, stand_in) {
            (What::Work(work), StandIn::Vm(preset, setting)) => {
                What::Work(work.built((preset, setting))?)
            }
            (What::Lock(meeting), StandIn::Lock(lock, load)) => What::Lock(Meeting {
                lock,
                load: Load {
                    private: meeting.load.private,
                    ..load
                },
                ..meeting.clone()
            }),
            _ => {
                let why = "one side of the pair is a preset, the other a lock";
                return Err(Failure::Unavailable(why.into()));
            }
        };
        Ok(Runner {
            what,
            seeds: self.seeds.clone(),
        })
    }

    /// Operations a second of `tasks` tasks: the median over the seeds.
    pub fn rate(&self, tasks: usize) -> Result<f64, Failure> {
        let rates = self.seeds.clone().map(|seed| match &self.what {
            What::Work(work) => work.rate(tasks, seed),
            What::Lock(meeting) => meeting.rate(tasks, seed),
        });
        let rates: Vec<f64> = rates.collect::<Result<_, _>>()?;
        Ok(Spread::of(rates).map_or(0.0, |spread| spread.median))
    }

    /// Fits one time to the rate of `tasks` tasks; returns its name and value.
    pub fn fit(&mut self, tasks: usize, rate: f64) -> Result<String, Failure> {
        match &mut self.what {
            What::Work(work) => work.fit(tasks, rate),
            What::Lock(meeting) => meeting.fit(tasks, rate, self.seeds.start),
        }
    }

    /// The mechanism that holds `tasks` tasks up, and a sentence on it.
    pub fn seen(&self, tasks: usize) -> Result<(Mechanism, String), Failure> {
        match &self.what {
            What::Work(work) => {
                let seen = work.seen(tasks)?;
                Ok((Mechanism::of(&seen), seen.bottleneck()))
            }
            What::Lock(meeting) => {
                let said = format!("the lock \"{}\"", meeting.lock.name);
                Ok((Mechanism::Lines, said))
            }
        }
    }
}

/// CPUs that contend for a lock.
#[derive(Clone)]
struct Meeting {
    lock: &'static Row,
    machine: MachineProfile,
    load: Load,
}

impl Meeting {
    fn rate(&self, cpus: usize, seed: u64) -> Result<f64, Failure> {
        let seeds = seed..seed + 1;
        let curve = curve(&self.machine, self.lock, &self.load, &[cpus], &seeds)?;
        Ok(curve[0].throughput.median)
    }

    /// Fits the time between sections.
    fn fit(&mut self, cpus: usize, rate: f64, seed: u64) -> Result<String, Failure> {
        self.load = fitted(&self.machine, self.lock, &self.load, cpus, rate, seed)?;
        let private = self.load.private;
        Ok(format!("a section follows the last by {private:.0} ns"))
    }
}
