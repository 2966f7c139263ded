//! A workload on scalevm's VM.
//!
//! An iteration of some workloads is long: page_fault1 touches 32,768 pages, then unmaps them. A
//! window that holds an iteration of each of many tasks takes minutes of this computer. So the
//! pages are counted in a short window of the first iteration, and what such a window gets wrong is
//! corrected: it lacks the unmap, and where pages are a file's these come into memory in the first
//! iteration only. The correction for an operation is the difference between whole and short
//! windows, measured with one task and with four, which shows what of it excludes other tasks
//! ([`Ends`]).

use super::mapping::Setting;
use baselines::Preset;
use bench::simulated::{Attribution, COUNTED, Simulated};
use bench::{Failure, Job, Mode, Plan};
use machine::PAGE_SIZE;
use sim::profile::MachineProfile;
use std::time::Duration;
use workloads::Workload;

/// Simulated time in which operations are counted.
const SPAN: Duration = Duration::from_millis(10);
/// Simulated time in which pages are counted; each task touches thousands meanwhile.
const SHORT: Duration = Duration::from_millis(5);
/// The memory that an iteration of an attributed run touches.
const SMALL: &str = "16M";
/// Tasks whose whole iterations show how their ends add up.
const TOGETHER: usize = 4;

/// The workload of a curve.
#[derive(Clone)]
pub struct Work {
    target: Simulated,
    /// For one task.
    plan: Plan,
    span: Duration,
    ends: Ends,
}

impl Work {
    /// The work of a kind of tasks on a machine, with the VM built as a preset.
    pub fn new(
        job: Job,
        mode: Mode,
        (preset, setting): (Preset, Setting),
        machine: &MachineProfile,
        seed: u64,
    ) -> Result<Self, Failure> {
        let plan = Plan::of(job, 1, mode, None);
        let mut target = Simulated::new(preset, machine.clone(), seed);
        set(&mut target, setting)?;
        let known = plan.workload.known()?;
        let span = match known.round(PAGE_SIZE) {
            1 => SPAN,
            _ => SHORT,
        };
        if span == SHORT && known.needs.files {
            // What brings a file's pages into memory is taken out again, so it takes no bandwidth
            // from others.
            target.profile.memory.zero_socket_gbps = f64::INFINITY;
        }
        let ends = Ends::seen(&target, &plan, span)?;
        Ok(Work {
            target,
            plan,
            span,
            ends,
        })
    }

    /// This work with the VM built in another way, or with another setting, and with its fitted
    /// time.
    pub fn built(&self, (preset, setting): (Preset, Setting)) -> Result<Self, Failure> {
        let mut other = self.clone();
        other.target.preset = preset;
        set(&mut other.target, setting)?;
        other.ends = Ends::seen(&other.target, &other.plan, other.span)?;
        Ok(other)
    }

    /// Operations a second of `tasks` tasks.
    pub fn rate(&self, tasks: usize, seed: u64) -> Result<f64, Failure> {
        let target = Simulated {
            seed,
            ..self.target.clone()
        };
        let window = target.counted(&self.of(tasks), self.span, COUNTED)?;
        Ok(self.ends.with(window.rate(), tasks))
    }

    /// Fits the time of a call or a fault to the rate of `tasks` tasks; returns its name and value.
    pub fn fit(&mut self, tasks: usize, rate: f64) -> Result<String, Failure> {
        let measured = |target: &Simulated, tasks| {
            let operations = COUNTED * tasks as u64;
            let window = target.counted(&self.of(tasks), self.span, operations)?;
            Ok(self.ends.with(window.rate(), tasks))
        };
        let (fitted, what, time) = self.target.fitted_by(&self.of(tasks), rate, measured)?;
        self.target = fitted;
        Ok(format!("{} takes {time:.0} ns", what.name()))
    }

    /// The attribution of the time of `tasks` tasks, with the ends of iterations. So that a window
    /// of whole iterations is not too long, they touch less memory.
    pub fn seen(&self, tasks: usize) -> Result<Attribution, Failure> {
        let mut target = self.target.clone();
        let mut plan = self.of(tasks);
        if let (true, Job::Known(workload)) = (self.span == SHORT, plan.workload) {
            let small = workloads::find(&format!("{}:{SMALL}", workload.name));
            let is_smaller = |small: &&Workload| small.size < workload.size;
            plan.workload = Job::Known(small.filter(is_smaller).unwrap_or(workload));
            target.conditions.whole = true;
        }
        target.attribute(&plan, self.span)
    }

    fn of(&self, tasks: usize) -> Plan {
        Plan::of(self.plan.workload, tasks, self.plan.mode, None)
    }
}

/// Gives a run its setting.
fn set(target: &mut Simulated, setting: Setting) -> Result<(), Failure> {
    target.conditions.place = setting.place;
    target.conditions.disturbed = true;
    if let Some(time) = setting.broadcast {
        let machine = target.profile.with_broadcast(time);
        target.profile = machine.map_err(|error| Failure::Unavailable(error.to_string()))?;
    }
    Ok(())
}

/// The seconds that an operation takes in addition to those of a short window; negative for the
/// first iteration's own work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ends {
    /// The seconds in which no other task makes progress.
    exclusive: f64,
    /// The seconds that tasks spend concurrently.
    parallel: f64,
}

impl Ends {
    /// The ends of the plan's workload; zero if its iterations have one operation.
    fn seen(target: &Simulated, plan: &Plan, span: Duration) -> Result<Self, Failure> {
        if plan.workload.known()?.round(PAGE_SIZE) == 1 {
            return Ok(Ends::default());
        }
        let end = |tasks| -> Result<f64, Failure> {
            let plan = Plan::of(plan.workload, tasks, plan.mode, None);
            let mut target = target.clone();
            let part = target.sample(&plan, span)?.rate();
            target.conditions.whole = true;
            Ok(1.0 / target.sample(&plan, span)?.rate() - 1.0 / part)
        };
        let tasks = TOGETHER.min(target.profile.cpus());
        let alone = end(1)?;
        match tasks {
            1 => Ok(Ends::of(alone, 2, 0.0)),
            tasks => Ok(Ends::of(alone, tasks, end(tasks)?)),
        }
    }

    /// Computes the ends from those of one task, and of `tasks` together.
    fn of(alone: f64, tasks: usize, together: f64) -> Self {
        let tasks = tasks as f64;
        let exclusive = ((tasks * together - alone) / (tasks - 1.0)).max(0.0);
        Ends {
            exclusive,
            parallel: alone - exclusive,
        }
    }

    /// The rate of tasks that do `rate` operations a second in a short window.
    fn with(self, rate: f64, tasks: usize) -> f64 {
        let seconds = 1.0 / rate + self.exclusive + self.parallel / tasks as f64;
        1.0 / seconds.max(LEAST)
    }
}

/// The fewest seconds that an operation takes.
const LEAST: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_iterations_overlap_or_add_up() {
        // A second an operation alone; of four at once side by side, or one after the other.
        let (own, waiting) = (Ends::of(1.0, 4, 0.25), Ends::of(1.0, 4, 1.0));
        let ends = |exclusive, parallel| Ends {
            exclusive,
            parallel,
        };
        assert_eq!((own, waiting), (ends(0.0, 1.0), ends(1.0, 0.0)));
        // Eight operations a second in a short window: an eighth of a second each, and an end's
        // share.
        assert_eq!(own.with(8.0, 8), 4.0);
        assert_eq!(waiting.with(8.0, 8), 1.0 / 1.125);
        assert_eq!(Ends::default().with(8.0, 8), 8.0);
        // The first iteration takes two seconds an operation more, and each end excludes others for
        // one.
        let both = Ends::of(-1.0, 4, 0.5);
        assert_eq!(both, ends(1.0, -2.0));
        assert_eq!(both.with(1.0, 4), 1.0 / 1.5);
        assert_eq!(Ends::of(1.0, 4, 0.2), own, "noise");
    }
}
