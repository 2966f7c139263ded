//! What a recording of the kernel gives a profile, on os and on hosted alike.

use super::Subject;
use super::watched::Runs;
use crate::harness::Failure;
use crate::output::json;
use perf::{Clock, Recording};
use profile::Profile;

/// The profile without its locks.
pub fn profile<T>(
    subject: &Subject<'_>,
    runs: &Runs<T>,
    recording: &Recording,
) -> Result<Profile, Failure> {
    let clock = match recording.clock() {
        Clock::Cycles => "cycles",
        Clock::CpuClock => "cpu-clock",
    };
    let mut machine = json::machine();
    machine.observe_after();
    Ok(Profile {
        subject: subject.name()?,
        seconds: runs.seconds,
        clock: clock.into(),
        rate: runs.watched,
        rate_unwatched: Some(runs.unwatched),
        busy: recording.busy(),
        waits: recording.waiting(),
        locks: Vec::new(),
        bottleneck: String::new(),
        notes: recording.notes(),
        machine: Some(machine),
    })
}
