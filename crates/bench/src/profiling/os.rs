//! On the kernel of this computer: samples and lock tracepoints on all CPUs. A recording of them
//! gives a profile the same on os and on hosted.

use super::Subject;
use super::watched::{self as runs, Probe, Runs};
use crate::harness::{Failure, Running};
use crate::tasks::BEGIN;
use perf::{Options, Recorder, Recording};
use profile::{Hidden, Profile};

/// Profiles a second run of the plan that was measured unwatched.
pub fn profile(subject: &Subject<'_>) -> Result<Option<Profile>, Failure> {
    let probe = |running: &dyn Running| KernelEvents::new(running, &subject.options);
    let runs = runs::both(subject, probe)?;
    Ok(runs.map(|runs| of(subject, &runs)))
}

fn of(subject: &Subject<'_>, runs: &Runs<Recording>) -> Profile {
    let mut profile = watched(subject, runs, Some(&runs.seen));
    runs.seen.judge(&mut profile);
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

/// The profile of a run without its locks; with nothing seen but rates if there is no recording.
pub fn watched<T>(subject: &Subject<'_>, runs: &Runs<T>, recording: Option<&Recording>) -> Profile {
    let of = subject.system.subject(&subject.plan);
    let profile = Profile {
        rate: Some(runs.watched),
        rate_unwatched: Some(runs.unwatched),
        cost_interval: runs.cost,
        machine: Some(runs.machine.clone()),
        hidden: NOTHING_SEEN,
        ..Profile::new(of, runs.seconds, "lock profile")
    };
    match recording {
        Some(recording) => {
            let profile = recording.fill(profile);
            Profile {
                busy: profile.busy.begun_at(BEGIN),
                waits: profile.waits.begun_at(BEGIN),
                moments: profile.moments.map(|all| all.begun_at(BEGIN)),
                ..profile
            }
        }
        None => profile,
    }
}
