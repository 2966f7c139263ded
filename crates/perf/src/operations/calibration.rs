//! What recording costs the recorded program, measured when it begins.

use super::raw::Happened;
use super::tracer::Tracer;
use crate::session::{SETTLED, now, own_thread};
use std::io;
use std::time::{Duration, Instant};

/// First touches that are measured.
const TOUCHES: usize = 4_000;
/// Rounds of a loop of memory calls, recorded and not. The fastest counts: others may use the CPU.
const ROUNDS: usize = 10;
/// Pairs of calls of a round.
const PAIRS: u32 = 300;

/// Costs of recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    /// Nanoseconds outside of a call that recording it takes.
    pub call: u64,
    /// Nanoseconds outside of a fault that recording it takes.
    pub fault: u64,
    /// By which share a loop of `mmap` and `munmap` takes longer when it is recorded.
    pub share: f64,
}

/// Measures the costs by what the calling thread does. All that is recorded meanwhile is dropped.
pub(super) fn calibrate(tracer: &mut Tracer) -> io::Result<Costs> {
    let (mut unwatched, mut watched) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        unwatched = unwatched.min(memory_calls()?);
        tracer.enable()?;
        watched = watched.min(memory_calls()?);
        tracer.disable()?;
    }
    tracer.enable()?;
    let touched = touch();
    tracer.disable()?;
    touched?;
    let (call, fault) = gaps(tracer);
    Ok(Costs {
        call,
        fault,
        share: watched.as_secs_f64() / unwatched.as_secs_f64() - 1.0,
    })
}

/// The median times from a call's end to the next call, and from a fault's end to the next fault.
fn gaps(tracer: &mut Tracer) -> (u64, u64) {
    let own = own_thread();
    let (mut calls, mut faults) = (Vec::new(), Vec::new());
    let mut returned = None;
    let mut resolved = None;
    tracer.read();
    for event in tracer.take_until(now() + SETTLED) {
        let time = event.time;
        match event.event.what {
            _ if event.event.thread.tid != own => {}
            Happened::Return { .. } => returned = Some(time),
            Happened::Enter { .. } => {
                calls.extend(returned.take().map(|before| time.saturating_sub(before)));
            }
            Happened::Resolved => resolved = Some(time),
            Happened::Fault { .. } => {
                faults.extend(resolved.take().map(|before| time.saturating_sub(before)));
            }
            _ => (returned, resolved) = (None, None),
        }
    }
    (median(calls), median(faults))
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// Writes to new pages, one after the other.
fn touch() -> io::Result<()> {
    const PAGE: usize = 4096;
    let memory = Memory::new(TOUCHES * PAGE)?;
    for page in 0..TOUCHES {
        // SAFETY: inside the mapping, which is this function's.
        unsafe { memory.start.add(page * PAGE).write_volatile(1) };
    }
    Ok(())
}

/// The time of a round of the loop.
fn memory_calls() -> io::Result<Duration> {
    const LENGTH: usize = 1 << 20;
    let begun = Instant::now();
    for _ in 0..PAIRS {
        Memory::new(LENGTH)?;
    }
    Ok(begun.elapsed())
}

/// A mapping, unmapped when dropped.
struct Memory {
    start: *mut u8,
    length: usize,
}

impl Memory {
    fn new(length: usize) -> io::Result<Memory> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory in use.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0) };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Memory {
                start: start.cast(),
                length,
            }),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping, and with this value goes its last user.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
