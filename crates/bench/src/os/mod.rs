//! The kernel of this computer, through libc.
//!
//! Tasks are child processes or threads of one, pinned round-robin over cores or CPUs.
//! Their counters and their errors lie in memory shared by all of them.
//! Nothing outlives the measurement: however it ends, children are killed and reaped,
//! by the kernel itself if this process is killed.

pub mod compiler;
mod processes;
mod system;
mod usage;

#[cfg(test)]
mod tests;

use crate::harness::{Failure, Film, Job, Plan, Running, Target, Times, interrupt};
use crate::own;
use crate::tasks::{self, Affinity, Area, Gate, places};
use processes::Processes;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use system::{Linux, Prepared};
use usage::Usage;
use workloads::{Counter, Feature};

/// The kernel of this computer as a target.
#[derive(Clone)]
pub struct Os {
    /// Where tasks run.
    pub affinity: Affinity,
}

impl Target for Os {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        match plan.workload {
            Job::Known(_) | Job::Film(_) | Job::Recorded(..) => {
                Ok(Box::new(self.tasks(plan, std::env::temp_dir())?))
            }
            Job::Own(own) => Ok(Box::new(own::start(plan, own, self.affinity)?)),
        }
    }

    fn complete(&self, plan: &Plan, _: u32) -> Result<Times, Failure> {
        let tasks = self.tasks(plan, std::env::temp_dir())?;
        let (began, before) = (Instant::now(), Usage::now());
        tasks.join()?;
        let Usage { user, sys, faults } = Usage::now();
        Ok(Times {
            real: began.elapsed(),
            user: user.saturating_sub(before.user),
            sys: sys.saturating_sub(before.sys),
            faults: Some(faults.saturating_sub(before.faults)),
        })
    }

    /// The player is a thread of this process, whatever the others are: its record must not be
    /// lost.
    fn play(&self, plan: &Plan, film: &'static Film) -> Result<(), Failure> {
        let others = Plan {
            workload: film.background.into(),
            tasks: plan.tasks - 1,
            ..*plan
        };
        let mut running = match others.tasks {
            0 => None,
            _ => Some(self.start(&others)?),
        };
        let system = Linux::new(std::env::temp_dir(), plan.mode, Prepared::default());
        let tick = Counter::new();
        let played = std::thread::scope(|scope| {
            let player = scope.spawn(|| film.play(&mut system.of_task(others.tasks), &tick));
            while !player.is_finished() {
                std::thread::sleep(TURN);
                let checked = running.as_mut().map_or(Ok(()), |running| running.check());
                if let Err(failure) = interrupt::check().and(checked) {
                    tick.stop();
                    return Err(failure);
                }
            }
            Ok(player.join())
        })?;
        let (workload, task) = (film.background.name, others.tasks);
        match played {
            Ok(Ok(())) => running.map_or(Ok(()), |running| running.stop()),
            Ok(Err(error)) => Err(Failure::Task {
                workload,
                task,
                error,
            }),
            Err(_) => Err(Failure::Died {
                workload,
                task,
                status: None,
            }),
        }
    }
}

/// Spends a delay outside of the kernel.
fn spend(nanoseconds: u64) -> [u64; 2] {
    tasks::spend(nanoseconds, || ())
}

/// The time between two checks that all is well.
const TURN: Duration = Duration::from_millis(20);

impl Os {
    /// Starts the tasks, with their files in `directory`.
    fn tasks(&self, plan: &Plan, directory: PathBuf) -> Result<Processes, Failure> {
        // The threads of a recorded program would all be where its first one is born.
        let affinity = match plan.workload.uses(Feature::Recording) {
            true => Affinity::None,
            false => self.affinity,
        };
        let places = places::places(affinity).map_err(Failure::start("CPU affinity"))?;
        let area = Area::new(plan, spend).map_err(Failure::start("shared memory"))?;
        let gate = Gate::new().map_err(Failure::start("pipe"))?;
        let prepared = Prepared::new(plan, &directory)?;
        let system = Linux::new(directory, plan.mode, prepared);
        processes::start(plan, &places, area, &gate, system)
    }
}
