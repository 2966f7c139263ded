//! What can be recorded here, asked without recording.

use crate::event::{Attributes, Counter, Scope, Target, Tracefs, Tracepoints};
use crate::{Clock, Options, Recorder};
use std::io;

/// Whether the CPU's cycles can be counted, of the calling process at least; why not.
pub fn cycles() -> io::Result<()> {
    let frequency = Options::default().frequency;
    let attributes = Attributes::clock(Clock::Cycles, frequency, Scope::User);
    // Thread 0 is the calling one.
    Counter::open(&attributes, Target::Thread(0, 0)).map(drop)
}

/// Whether the kernel's waits for locks can be traced; why not.
pub fn tracepoints() -> io::Result<()> {
    Tracepoints::find(&Tracefs::open()?).map(drop)
}

/// Whether user stacks of own processes, at least, can be sampled.
pub fn samples() -> bool {
    Recorder::open(&Options::default(), &[]).is_ok()
}

/// Whether all can be recorded: kernel stacks, waits for its locks and time off CPU too.
pub fn everything() -> bool {
    let recorder = Recorder::open(&Options::default(), &[]);
    recorder.is_ok_and(|recorder| recorder.missing().is_empty())
}
