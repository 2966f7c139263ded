//! scalevm's own kernel in a guest, as a system to run workloads on.
//!
//! Each measurement boots a guest of its own. The guest runs the workloads of [`os`](crate::os),
//! unchanged: that module, linked statically, is a program of the guest's ([`crate::inside`]) and
//! runs on scalevm's kernel there. It reports the tasks' counts, and their time by the guest's
//! clock; a `Guest` holds the latest report.

mod guest;
mod program;

use crate::harness::{Failure, Film, Job, Plan, Running, Target, Times};
use crate::inside::{Line, Window};
use crate::on::{On, subject};
use crate::tasks::{Affinity, Mask};
use baselines::Preset;
use guest::Guest;
pub(crate) use guest::Watched;
use stats::record::Subject;

/// scalevm's kernel as a target.
#[derive(Clone)]
pub struct GuestKernel {
    /// How its VM is built.
    pub preset: Preset,
    /// Where tasks run on the guest's CPUs.
    pub affinity: Affinity,
    /// The number of the guest's CPUs.
    pub cpus: u32,
}

/// The largest number of CPUs that QEMU can emulate.
const MOST_CPUS: usize = 64;

/// The guest's memory, and more of it for each task.
const MEMORY: u64 = 1 << 30;
const MEMORY_OF_TASK: u64 = 256 << 20;

impl GuestKernel {
    /// A guest with as many CPUs as this process may use of the computer.
    ///
    /// # Errors
    /// Fails if the kernel does not say how many these are.
    pub fn new(preset: Preset, affinity: Affinity) -> Result<Self, Failure> {
        let mask = Mask::current().map_err(Failure::start("CPU affinity"))?;
        Ok(GuestKernel {
            preset,
            affinity,
            cpus: mask.cpus().len().min(MOST_CPUS) as u32,
        })
    }

    /// Describes `plan` on it.
    pub fn subject(&self, plan: &Plan) -> Subject {
        Subject {
            cpus: Some(self.cpus),
            ..subject(plan, On::Kernel, Some(self.preset))
        }
    }

    /// Runs the tasks of `plan`, watched by the kernel in a window.
    pub(crate) fn watch(&self, plan: &Plan, window: Window) -> Result<Watched, Failure> {
        self.boot(plan, Some(window))?.finish()
    }

    /// A guest with the tasks of `plan` at work.
    fn boot(&self, plan: &Plan, window: Option<Window>) -> Result<Guest, Failure> {
        check(plan)?;
        let machine = guests::Machine {
            cpus: self.cpus,
            memory: MEMORY + plan.tasks as u64 * MEMORY_OF_TASK,
            ..guests::Machine::default()
        };
        let program = program::of(plan)?;
        Guest::boot(plan, self.affinity, machine, self.preset, program, window)
    }
}

impl Target for GuestKernel {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        let mut guest = self.boot(plan, None)?;
        guest.begin()?;
        Ok(Box::new(guest))
    }

    fn complete(&self, plan: &Plan, _: u32) -> Result<Times, Failure> {
        match self.boot(plan, None)?.wait()? {
            Line::Times(times) => Ok(times),
            line => Err(Failure::Guest {
                workload: plan.workload.name(),
                why: format!("unexpected output from the guest: `{line}`"),
            }),
        }
    }

    fn play(&self, _: &Plan, _: &'static Film) -> Result<(), Failure> {
        let why = "latency cannot be measured on kernel, as a guest's reports arrive too late; use \
                   --on os, hosted or sim";
        Err(Failure::Unavailable(why.into()))
    }
}

/// Refuses plans that the kernel cannot run.
fn check(plan: &Plan) -> Result<(), Failure> {
    match plan.workload {
        Job::Own(own) if own.source.is_none() => Err(Failure::Unavailable(format!(
            "{}: only C files can be run on kernel as workloads of your own, as its programs are \
             linked statically",
            own.name
        ))),
        _ => Ok(()),
    }
}
