//! On the kernel of this computer: samples and lock tracepoints on all CPUs.

use super::watched::{self, Probe, Runs};
use super::{Subject, recorded};
use crate::commands;
use crate::harness::{Failure, Running};
use perf::{Options, Recorder, Recording};
use profile::{Profile, bottleneck};

/// Profiles a second run of what was measured unwatched.
pub fn profile(subject: &Subject<'_>) -> Result<Option<Profile>, Failure> {
    let target = commands::target(subject.on, subject.vm, subject.common)?;
    let probe = |running: &dyn Running| Kernel::new(running, subject.frequency);
    let runs = watched::both(&*target, &subject.plan, &subject.schedule, probe)?;
    Ok(runs.map(|runs| of(subject, &runs)))
}

fn of(subject: &Subject<'_>, runs: &Runs<Recording>) -> Profile {
    let mut profile = recorded::profile(subject, runs, Some(&runs.seen));
    let task_seconds = profile.task_seconds();
    profile.locks = runs.seen.locks(task_seconds);
    profile.bottleneck = bottleneck(&profile.locks, &profile.busy, &profile.waits, task_seconds);
    profile
}

/// The kernel's events.
pub struct Kernel(Recorder);

impl Kernel {
    /// Watches the processes of `running`.
    pub fn new(running: &dyn Running, frequency: u32) -> Result<Self, Failure> {
        let options = Options {
            frequency,
            ..Options::default()
        };
        let recorder = Recorder::open(&options, &running.pids());
        recorder.map(Kernel).map_err(Failure::Recording)
    }
}

impl Probe for Kernel {
    type Seen = Recording;

    fn start(&mut self) -> Result<(), Failure> {
        self.0.start().map_err(Failure::Recording)
    }

    fn seen(self) -> Result<Recording, Failure> {
        self.0.finish().map_err(Failure::Recording)
    }
}
