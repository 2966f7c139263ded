//! What a recording of the kernel gives a profile, on os and on hosted alike.

use super::Subject;
use super::watched::Runs;
use crate::output::json;
use crate::tasks::BEGIN;
use perf::{Clock, Recording};
use profile::Profile;

/// The profile without its locks.
pub fn profile<T>(subject: &Subject<'_>, runs: &Runs<T>, recording: &Recording) -> Profile {
    let clock = match recording.clock() {
        Clock::Cycles => "cycles",
        Clock::CpuClock => "cpu-clock",
    };
    let mut machine = json::machine();
    machine.observe_after();
    Profile {
        subject: json::subject(&subject.plan, subject.on, subject.vm, None),
        seconds: runs.seconds,
        clock: clock.into(),
        rate: runs.watched,
        rate_unwatched: Some(runs.unwatched),
        busy: recording.busy().begun_at(BEGIN),
        waits: recording.waiting().begun_at(BEGIN),
        locks: Vec::new(),
        bottleneck: String::new(),
        notes: recording.notes(),
        machine: Some(machine),
    }
}
