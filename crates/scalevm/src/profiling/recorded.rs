//! What a recording of the kernel gives a profile, on os and on hosted alike.

use super::Subject;
use super::watched::Runs;
use crate::output::json;
use crate::tasks::BEGIN;
use perf::Recording;
use profile::{Profile, Stacks};

/// The profile without its locks; with nothing seen but rates if there is no recording.
pub fn profile<T>(subject: &Subject<'_>, runs: &Runs<T>, recording: Option<&Recording>) -> Profile {
    let clock = recording.map_or("lock profile", |recording| recording.clock().name());
    let begun = |stacks: fn(&Recording) -> Stacks| {
        recording.map_or_else(Stacks::default, |recording| {
            stacks(recording).begun_at(BEGIN)
        })
    };
    Profile {
        subject: json::subject(&subject.plan, subject.on, subject.vm, None),
        seconds: runs.seconds,
        clock: clock.into(),
        rate: runs.watched,
        rate_unwatched: Some(runs.unwatched),
        busy: begun(Recording::busy),
        waits: begun(Recording::waiting),
        locks: Vec::new(),
        bottleneck: String::new(),
        notes: recording.map_or_else(Vec::new, Recording::notes),
        machine: Some(runs.machine.clone()),
    }
}
