//! Profiles scalevm's VM on threads: its lock profile, and the kernel's view of the threads.

use super::os::{KernelEvents, watched};
use super::watched::{self as runs, Probe, Runs};
use super::{Subject, own};
use crate::harness::{Failure, Running};
use hosted::{Hosted, Off};
use machine::Tasks;
use perf::Recording;
use profile::{Kind, PREEMPTED, Profile, Stacks};
use sync::watch::profile::{self as lock_profile, Row, Tables};

/// Profiles a second run of the plan that was measured unwatched.
pub fn profile(subject: &Subject<'_>) -> Result<Option<Profile>, Failure> {
    let probe = |running: &dyn Running| {
        let (kernel, refused) = match KernelEvents::new(running, &subject.options) {
            // The VM's own locks are seen without it.
            Err(Failure::Recording(error @ perf::Error::Refused(_))) => (None, Some(error)),
            kernel => (Some(kernel?), None),
        };
        Ok(Both {
            kernel,
            refused: refused.map(|error| error.to_string()),
            tasks: subject.plan.tasks,
            scheduled: running.scheduled().cloned(),
            off: Off::default(),
        })
    };
    let runs = runs::both(subject, probe)?;
    Ok(runs.map(|runs| of(subject, &runs)))
}

fn of(subject: &Subject<'_>, runs: &Runs<Seen>) -> Profile {
    let Seen {
        recording,
        refused,
        rows,
        off,
    } = &runs.seen;
    let mut profile = watched(subject, runs, recording.as_ref());
    // A task is one thread here; others of the process's, as a reclaim daemon's, are none.
    profile.lived = None;
    profile.spent = None;
    let task_seconds = profile.task_seconds();
    profile.notes.extend(refused.clone());
    profile.locks = own::locks(rows, task_seconds);
    match recording {
        Some(recording) => {
            // Threads wait for the kernel's locks, too, where they fault or are created; they wait
            // for the VM's by a futex.
            let kernel = recording.locks(task_seconds).into_iter();
            let others = kernel.filter(|lock| lock.kind != Kind::Futex);
            profile.locks.extend(others);
            profile.holders = recording.holders();
        }
        None => profile.waits = own::waits(rows, subject.plan.workload.name()),
    }
    if let Some(off) = off {
        profile.waits = off_cpus(rows, subject.plan.workload.name(), *off);
    }
    profile.locks.sort_by(|a, b| b.share.total_cmp(&a.share));
    profile.name_bottleneck();
    profile
}

/// The waits of tasks under scalevm's scheduler: for locks, for something else, and for a CPU. The
/// kernel's view of the threads is how long the CPUs had no task.
fn off_cpus(rows: &[Row], workload: &str, off: Off) -> Stacks {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let mut waits = own::waits(rows, workload);
    let others = seconds(off.blocked) - waits.total();
    waits.add([workload, "[blocked]"], others.max(0.0));
    waits.add(
        [PREEMPTED, workload, "[waits for a CPU]"],
        seconds(off.queued),
    );
    waits
}

/// The kernel's events, if there are any, and the VM's lock profile.
struct Both {
    kernel: Option<KernelEvents>,
    refused: Option<String>,
    tasks: usize,
    /// The machine that has a scheduler, and how long its tasks had been off CPUs at the start.
    scheduled: Option<Hosted>,
    off: Off,
}

/// The observations of both.
struct Seen {
    recording: Option<Recording>,
    /// The reason why there is no recording.
    refused: Option<String>,
    rows: Vec<Row>,
    /// The time that tasks have been off CPUs, under scalevm's scheduler.
    off: Option<Off>,
}

impl Probe for Both {
    type Seen = Seen;

    fn start(&mut self) -> Result<(), Failure> {
        let out_of_memory =
            |_| Failure::start("lock profile")(std::io::ErrorKind::OutOfMemory.into());
        locks().reset();
        self.off = self.scheduled.as_ref().map_or(self.off, Hosted::off);
        self.kernel.as_mut().map_or(Ok(()), KernelEvents::start)?;
        locks().start(self.tasks).map_err(out_of_memory)
    }

    fn seen(self) -> Result<Seen, Failure> {
        locks().stop();
        let off = self.scheduled.map(|machine| {
            let now = machine.off();
            Off {
                blocked: now.blocked - self.off.blocked,
                queued: now.queued - self.off.queued,
            }
        });
        Ok(Seen {
            off,
            recording: self.kernel.map(KernelEvents::seen).transpose()?,
            refused: self.refused,
            rows: locks().report(),
        })
    }
}

/// The lock profile of all hosted machines.
fn locks() -> &'static Tables {
    lock_profile::of(Hosted::anchor())
}
