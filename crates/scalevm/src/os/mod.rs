//! The kernel of this computer, through libc.
//!
//! Tasks are child processes or threads, pinned round-robin over cores or CPUs.
//! Their counters and what became of them lie in memory shared by all of them.
//! Nothing outlives the measurement: children are killed and reaped when it ends in
//! whatever way, and by the kernel itself should this process be killed.

mod processes;
mod system;

#[cfg(test)]
mod tests;

use crate::harness::{Failure, Job, Mode, Plan, Running, Target};
use crate::own;
use crate::tasks::{Affinity, Area, Gate, places, threads};
use std::path::PathBuf;
use system::{Linux, Prepared, spare_cancellation};

/// The kernel of this computer as a target.
pub struct Os {
    /// Where tasks run.
    pub affinity: Affinity,
}

impl Target for Os {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        match plan.workload {
            Job::Known(_) => self.start_in(plan, std::env::temp_dir()),
            Job::Own(own) => Ok(Box::new(own::start(plan, own, self.affinity)?)),
        }
    }
}

impl Os {
    /// As [`Target::start`], with the files in `directory`.
    fn start_in(&self, plan: &Plan, directory: PathBuf) -> Result<Box<dyn Running>, Failure> {
        let places = places::places(self.affinity).map_err(Failure::start("CPU affinity"))?;
        let area = Area::new(plan.tasks).map_err(Failure::start("shared memory"))?;
        let gate = Gate::new().map_err(Failure::start("pipe"))?;
        let prepared = Prepared::new(plan, &directory)?;
        let system = Linux::new(directory, plan.mode, prepared);
        Ok(match plan.mode {
            Mode::Processes => Box::new(processes::start(plan, &places, area, &gate, system)?),
            Mode::Threads => {
                let enter = move |task| {
                    spare_cancellation();
                    Ok(system.of_task(task))
                };
                Box::new(threads::start(plan, &places, area, gate, enter)?)
            }
        })
    }
}
