//! On the kernel of this computer: samples and lock tracepoints on all CPUs. A recording of them
//! gives a profile the same on os and on hosted.

use super::Subject;
use super::watched::{self, Probe, Runs};
use crate::harness::{Failure, Running};
use crate::tasks::BEGIN;
use perf::{Options, Recorder, Recording};
use profile::{Hidden, Profile, Stacks};

/// Profiles a second run of the plan that was measured unwatched.
pub fn profile(subject: &Subject<'_>) -> Result<Option<Profile>, Failure> {
    let probe = |running: &dyn Running| KernelEvents::new(running, &subject.options);
    let runs = watched::both(subject, probe)?;
    Ok(runs.map(|runs| of(subject, &runs)))
}

fn of(subject: &Subject<'_>, runs: &Runs<Recording>) -> Profile {
    let mut profile = recorded(subject, runs, Some(&runs.seen));
    profile.locks = runs.seen.locks(profile.task_seconds());
    profile.holders = runs.seen.holders();
    profile.name_bottleneck();
    profile
}

/// The kernel's events.
pub struct KernelEvents(Recorder);

impl KernelEvents {
    /// Watches the processes of `running`.
    pub fn new(running: &dyn Running, options: &Options) -> Result<Self, Failure> {
        let mut recorder = Recorder::open(options, &running.pids()).map_err(Failure::Recording)?;
        recorder.leave_out(&running.drivers());
        Ok(KernelEvents(recorder))
    }
}

impl Probe for KernelEvents {
    type Seen = Recording;

    fn start(&mut self) -> Result<(), Failure> {
        self.0.start().map_err(Failure::Recording)
    }

    fn seen(self) -> Result<Recording, Failure> {
        self.0.finish().map_err(Failure::Recording)
    }
}

/// Without a recording.
const NOTHING_SEEN: Hidden = Hidden {
    kernel: true,
    waits: true,
};

/// The profile without its locks; with nothing seen but rates if there is no recording.
pub fn recorded<T>(
    subject: &Subject<'_>,
    runs: &Runs<T>,
    recording: Option<&Recording>,
) -> Profile {
    let clock = recording.map_or("lock profile", |recording| recording.clock().name());
    let begun = |stacks: fn(&Recording) -> Stacks| {
        recording.map_or_else(Stacks::default, |recording| {
            stacks(recording).begun_at(BEGIN)
        })
    };
    Profile {
        subject: subject.system.subject(&subject.plan),
        seconds: runs.seconds,
        clock: clock.into(),
        rate: Some(runs.watched),
        rate_unwatched: Some(runs.unwatched),
        lived: recording.map(|recording| recording.lived().as_secs_f64()),
        hidden: recording.map_or(NOTHING_SEEN, Recording::hidden),
        busy: begun(Recording::busy),
        waits: begun(Recording::waiting),
        locks: Vec::new(),
        holders: Vec::new(),
        bottleneck: String::new(),
        notes: recording.map_or_else(Vec::new, Recording::notes),
        machine: Some(runs.machine.clone()),
    }
}
