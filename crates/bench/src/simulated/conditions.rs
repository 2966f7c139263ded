//! The conditions of a simulated run that neither the machine nor the system sets.

use super::{COUNTED, Simulated, private};
use crate::harness::{Failure, Plan};
use sim::Delays;
use sim::profile::Topology;
use std::time::Duration;

/// The CPUs that tasks take, while there are enough for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// One socket after the other, first threads before second ones: as will-it-scale pins its
    /// tasks.
    #[default]
    Pack,
    /// A socket in turn for each, first threads before second ones: as kernels place tasks that are
    /// not pinned.
    Spread,
}

impl Placement {
    /// All places, by the names that users give.
    pub const NAMED: [(&'static str, Placement); 2] =
        [("pack", Placement::Pack), ("spread", Placement::Spread)];

    /// The place called `name`.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMED.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, place)| place)
    }

    pub fn name(self) -> &'static str {
        let found = Self::NAMED.into_iter().find(|(_, place)| *place == self);
        found.map_or("", |(name, _)| name)
    }

    pub fn cpu(self, topology: &Topology, task: usize) -> usize {
        let (sockets, cores) = (topology.sockets, topology.cores);
        match self {
            Placement::Pack => task,
            Placement::Spread => {
                let (thread, core) = (task / (sockets * cores), task % (sockets * cores));
                thread * sockets * cores + core % sockets * cores + core / sockets
            }
        }
    }
}

/// Disturbances of a warm-up: rare enough to leave rates as they are where no lock is contended.
pub const DISTURBANCES: Delays = Delays {
    one_in: 1_000,
    most: 2_000,
};

/// The conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The placement of tasks.
    pub place: Placement,
    /// A window is as long as each task takes for an iteration, and at least as long as requested.
    /// (Otherwise it is as long as requested, though that may leave out what ends an iteration.)
    pub whole: bool,
    /// Accesses of the warm-up are delayed at random, as interrupts and cache misses delay real
    /// ones, where iterations have one step. (In others the end of an iteration delays them.) A
    /// lock that tasks ask for more often than its queue passes it on, but that none of them has
    /// found held so far, is found held once, and its queue stays.
    pub disturbed: bool,
    /// Nanoseconds that a call computes in addition to the simulator's charges before it locks
    /// anything, if not the workload's.
    pub call: Option<f64>,
    /// Nanoseconds that a call computes in addition once it has locked the map to change it.
    pub change: f64,
    /// The time that a task spends outside of the system before each operation.
    pub delay: Duration,
}

/// The times that can be fitted to the rate of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitted {
    /// That of a call with the map locked.
    Change,
    Call,
    Fault,
}

impl Fitted {
    const ALL: [Fitted; 3] = [Fitted::Change, Fitted::Call, Fitted::Fault];

    /// What takes that time.
    pub fn name(self) -> &'static str {
        match self {
            Fitted::Change => "a call with the map locked",
            Fitted::Call => "a call",
            Fitted::Fault => "a fault",
        }
    }
}

/// Nanoseconds by which a time is changed to see what it matters.
const STEP: f64 = 100.0;
/// The part of a workload's calls, by their time, that is most of them.
const MOST_CALLS: f64 = 0.75;
/// The most times that a fit is improved: where tasks wait for each other, a longer time of each
/// changes less.
const ROUNDS: usize = 8;
/// The accepted error of the fitted rate of one task.
const CLOSE: f64 = 0.01;

impl Simulated {
    /// This system with a time for a call, or for a fault if the workload is made of faults, with
    /// which the plan's tasks together reach `rate` operations a second. Also returns that time, in
    /// nanoseconds.
    ///
    /// # Errors
    /// No such time makes that rate.
    pub fn fitted(
        &self,
        plan: &Plan,
        span: Duration,
        rate: f64,
    ) -> Result<(Self, Fitted, f64), Failure> {
        self.fitted_by(plan, rate, |target, tasks| {
            let plan = Plan::of(plan.workload, tasks, plan.mode, None);
            let operations = COUNTED * tasks as u64;
            Ok(target.counted(&plan, span, operations)?.rate())
        })
    }

    /// This system with a time for a call or a fault at which `measured`, which returns the rate of
    /// a number of tasks on a system, returns `rate`.
    ///
    /// # Errors
    /// No such time makes that rate.
    pub fn fitted_by(
        &self,
        plan: &Plan,
        rate: f64,
        measured: impl Fn(&Self, usize) -> Result<f64, Failure>,
    ) -> Result<(Self, Fitted, f64), Failure> {
        let period = |target: &Self, tasks| {
            let rate = measured(target, tasks)?;
            Ok::<_, Failure>(tasks as f64 * 1e9 / rate.max(1e-9))
        };
        let unfitted = private(plan.workload.known()?);
        // One task shows which time matters, and how much while it waits for no other.
        let now = period(self, 1)?;
        let mut slopes = [0.0; Fitted::ALL.len()];
        for (slope, what) in slopes.iter_mut().zip(Fitted::ALL) {
            let longer = self.with(what, self.time(what, unfitted) + STEP);
            *slope = (period(&longer, 1)? - now) / STEP;
        }
        let [change, call, fault] = slopes;
        let (what, alone) = match call.max(fault) {
            // Each call changes the map: there it does its work.
            most if change >= MOST_CALLS * most => (Fitted::Change, change),
            most if fault > call => (Fitted::Fault, most),
            most => (Fitted::Call, most),
        };
        let tasks = plan.width();
        let wanted = tasks as f64 * 1e9 / rate;
        let approach = |mut fitted: Self| {
            let mut slope = alone;
            let mut found = period(&fitted, tasks)?;
            for _ in 0..ROUNDS {
                let (before, was) = (fitted.time(what, unfitted), found);
                let time = (before + (wanted - found) / slope).max(0.0);
                let is_stuck = !time.is_finite() || time == before;
                if (found / wanted - 1.0).abs() <= CLOSE / 4.0 || is_stuck {
                    break;
                }
                fitted = self.with(what, time);
                found = period(&fitted, tasks)?;
                // Under a lock that several tasks wait for, the time of each counts for all of
                // them.
                let seen = (found - was) / (time - before);
                slope = seen.clamp(alone, alone * tasks as f64);
            }
            let reached = tasks as f64 * 1e9 / found;
            Ok::<_, Failure>((fitted, reached))
        };
        let is_close = |reached: f64| (reached / rate - 1.0).abs() <= CLOSE;
        let (mut fitted, mut reached) = approach(self.clone())?;
        let apart = self.time(what, unfitted) + (wanted - now) / alone;
        if !is_close(reached) && tasks > 1 && apart.is_finite() {
            // Tasks that come often queue at a lock, and those that come seldom never meet: from
            // the other side.
            let other = approach(self.with(what, apart.max(0.0)))?;
            if is_close(other.1) {
                (fitted, reached) = other;
            }
        }
        if is_close(reached) {
            Ok((fitted.clone(), what, fitted.time(what, unfitted)))
        } else {
            Err(Failure::NotFitted(format!(
                "{} not reach {rate:.0} operations a second, however long {} takes: {reached:.0}",
                match tasks {
                    1 => "one task does".to_owned(),
                    _ => format!("{tasks} tasks do"),
                },
                what.name()
            )))
        }
    }

    /// That time now, of a workload whose calls take `unfitted` nanoseconds.
    fn time(&self, what: Fitted, unfitted: f64) -> f64 {
        match what {
            Fitted::Change => self.conditions.change,
            Fitted::Call => self.conditions.call.unwrap_or(unfitted),
            Fitted::Fault => self.profile.kernel.fault as f64 / 1000.0,
        }
    }

    fn with(&self, what: Fitted, nanoseconds: f64) -> Self {
        let mut target = self.clone();
        match what {
            Fitted::Change => target.conditions.change = nanoseconds,
            Fitted::Call => target.conditions.call = Some(nanoseconds),
            Fitted::Fault => target.profile.kernel.fault = (nanoseconds * 1000.0) as u64,
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::Placement;
    use sim::profile::MachineProfile;

    #[test]
    fn tasks_are_packed_or_spread() {
        let machine = MachineProfile::named("freebsd-96").expect("built in");
        let machine = machine.with_topology(2, 3, 2).expect("possible");
        let cpus = |place: Placement| -> Vec<usize> {
            (0..12)
                .map(|task| place.cpu(&machine.topology, task))
                .collect()
        };
        assert_eq!(cpus(Placement::Pack), (0..12).collect::<Vec<_>>());
        assert_eq!(
            cpus(Placement::Spread),
            [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
        );
    }
}
