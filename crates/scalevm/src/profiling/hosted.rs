//! On our own VM on threads: its lock profile, beside what the kernel sees of the threads.

use super::os::Kernel;
use super::watched::{self, Probe, Runs};
use super::{Subject, own, recorded};
use crate::commands;
use crate::harness::{Failure, Running};
use perf::Recording;
use profile::{Kind, Profile, bottleneck};
use sync::watch::profile as locks;

/// Profiles a second run of what was measured unwatched.
pub fn profile(subject: &Subject<'_>) -> Result<Option<Profile>, Failure> {
    let target = commands::target(subject.on, subject.vm, subject.common)?;
    let probe = |running: &dyn Running| {
        Ok(Both {
            kernel: Kernel::new(running, subject.frequency)?,
            tasks: subject.plan.tasks,
        })
    };
    let runs = watched::both(&*target, &subject.plan, &subject.schedule, probe)?;
    Ok(runs.map(|runs| of(subject, &runs)))
}

fn of(subject: &Subject<'_>, runs: &Runs<(Recording, Vec<locks::Row>)>) -> Profile {
    let (recording, rows) = &runs.seen;
    let mut profile = recorded::profile(subject, runs, recording);
    let task_seconds = profile.task_seconds();
    // The kernel's locks are waited for beside ours, where threads fault or are created;
    // a futex is how they wait for ours.
    let kernel = recording.locks(task_seconds).into_iter();
    profile.locks = own::locks(rows, task_seconds);
    profile
        .locks
        .extend(kernel.filter(|lock| lock.kind != Kind::Futex));
    profile.locks.sort_by(|a, b| b.share.total_cmp(&a.share));
    profile.bottleneck = bottleneck(&profile.locks, &profile.busy, &profile.waits, task_seconds);
    profile
}

/// The kernel's events and our lock profile.
struct Both {
    kernel: Kernel,
    tasks: usize,
}

impl Probe for Both {
    type Seen = (Recording, Vec<locks::Row>);

    fn start(&mut self) -> Result<(), Failure> {
        let out_of_memory =
            |_| Failure::start("lock profile")(std::io::ErrorKind::OutOfMemory.into());
        locks::reset();
        self.kernel.start()?;
        locks::start(self.tasks).map_err(out_of_memory)
    }

    fn seen(self) -> Result<Self::Seen, Failure> {
        locks::stop();
        Ok((self.kernel.seen()?, locks::report()))
    }
}
