//! A command that takes longer than a sample, such as a server: it runs once, watched by time.

use super::Subject;
use super::attached;
use super::os::KernelEvents;
use super::watched::Probe;
use crate::harness::{Failure, Own, Running, interrupt, say};
use crate::own;
use crate::tasks::Affinity;
use profile::Profile;
use std::time::{Duration, Instant};

/// The time between looks at whether it has completed.
const LOOK: Duration = Duration::from_millis(20);

/// Watches each task run the command `own` once, for `span` or until it completes; the command is
/// asked to end then. None if it completes within a sample, so that it can be repeated, or if the
/// user interrupts before. It may use all CPUs, as if no bench had started it.
pub fn profile(
    subject: &Subject<'_>,
    own: &'static Own,
    span: Option<Duration>,
) -> Result<Option<Profile>, Failure> {
    let mut machine = (subject.machine)();
    let begun = Instant::now();
    let mut guest = own::start(&subject.plan, own, Affinity::None)?;
    let mut probe = KernelEvents::new(&guest, &subject.options)?;
    probe.start()?;
    let watched = Instant::now();
    let sample = subject.schedule.duration;
    let mut counts = vec![0; subject.plan.tasks];
    loop {
        guest.check()?;
        guest.counts(&mut counts);
        if counts.iter().any(|&count| count > 0) || interrupt::pending().is_some() {
            return Ok(None);
        }
        if begun.elapsed() >= sample {
            break;
        }
        interrupt::sleep(LOOK);
    }
    guest.repeat_no_more();
    let name = &own.name;
    if span.is_none() {
        say(format_args!(
            "scalevm: {name} has not completed within {} s: watching it until it ends or Ctrl-C",
            sample.as_secs_f64()
        ));
    }
    let mut failed = None;
    let is_due = || span.is_some_and(|span| watched.elapsed() >= span);
    while !is_due() && interrupt::pending().is_none() && counts.contains(&0) && failed.is_none() {
        interrupt::sleep(LOOK);
        failed = guest.check().err();
        guest.counts(&mut counts);
    }
    let recording = probe.seen()?;
    guest.terminate();
    machine.observe_after();
    let mut profile = attached::of(subject.system.subject(&subject.plan), &recording, machine);
    let failed = failed.map(|failure| format!("the command failed: {failure}"));
    profile.notes.extend(failed);
    Ok(Some(profile))
}
