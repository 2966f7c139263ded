//! The parts that can be recorded here, tested without recording.

use crate::event::{Attributes, Counter, Scope, Source, Target, Tracefs, Tracepoints};
use crate::{Clock, Options, Recorder};
use std::io;

/// Fails, with the reason, if the CPU's cycles cannot be counted, not even of the calling process.
pub fn cycles() -> io::Result<()> {
    let frequency = Options::default().frequency;
    let attributes = Attributes::clock(Clock::Cycles, frequency, Scope::User);
    // Thread 0 is the calling thread.
    Counter::open(&attributes, Target::Thread(0, 0)).map(drop)
}

/// Fails, with the reason, if the kernel's lock waits cannot be traced. Reading the list of
/// tracepoints takes fewer rights than opening them.
pub fn tracepoints() -> io::Result<()> {
    let found = Tracepoints::find(&Tracefs::open()?)?;
    let open =
        |id, source| Counter::open(&Attributes::tracepoint(id, source), Target::Cpu(0)).map(drop);
    open(found.switch, Source::Switch)?;
    open(found.contention?.begin, Source::Begin)
}

/// Returns true if at least user stacks of this user's processes can be sampled.
pub fn samples() -> bool {
    Recorder::open(&Options::default(), &[]).is_ok()
}

/// Returns true if everything can be recorded: kernel stacks, kernel lock waits and time off CPU
/// too.
pub fn everything() -> bool {
    let recorder = Recorder::open(&Options::default(), &[]);
    recorder.is_ok_and(|recorder| recorder.missing().is_empty())
}

/// Returns true if this process is root's.
pub(crate) fn is_root() -> bool {
    // SAFETY: the call takes no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// The setting that allows everything.
pub(crate) const ALLOWS_ALL: &str = "sysctl kernel.perf_event_paranoid=-1";

/// How to be allowed what was refused: with `setting`, or as root. Root itself is bound by a
/// container only.
pub(crate) fn remedy(setting: &str) -> String {
    if is_root() {
        "root lacks the right here: the container must have CAP_PERFMON and be allowed the call"
            .into()
    } else {
        format!("run as root, or {setting}; a container must be allowed the call")
    }
}
