//! When no memory is left, the process with most memory is ended.

use super::{FIRST, PROCESSES, Process, Signal, Status, with_current};
use crate::system::system;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use machine::{Clock, PAGE_SIZE};
use metal::{Metal, report};

/// The time to wait for the process to end, and between two checks, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
const NAP: u64 = 1_000_000;
/// A process is ended only if it has at least this part of all memory.
const PART: u64 = 256;

/// Ends a process and waits until its memory is free. Returns true if the caller should try again.
pub fn relieve() -> bool {
    let caller = with_current(|thread| thread.map(|it| it.process.clone()));
    if caller.as_ref().is_some_and(|it| it.ending().is_some()) {
        return false;
    }
    let Some(victim) = ending().or_else(choose) else {
        return false;
    };
    let is_caller = caller.is_some_and(|caller| Arc::ptr_eq(&caller, &victim));
    if is_caller {
        return false;
    }
    let limit = Metal::now() + PATIENCE;
    // Acquire: pairs with the release in `Thread::finish`.
    while !victim.has_finished.load(Ordering::Acquire) {
        if Metal::now() >= limit {
            return false;
        }
        Metal::sleep_until(Metal::now() + NAP);
    }
    true
}

/// A process that is ending and still has memory, if there is one.
fn ending() -> Option<Arc<Process>> {
    let ends = |it: &Arc<Process>| it.ending().is_some() && pages(it) > 0;
    PROCESSES.all().find(ends)
}

/// Chooses the process with most pages, ends it, and names it on the report channel.
fn choose() -> Option<Arc<Process>> {
    let all = PROCESSES.all();
    let others = all.filter(|it| it.pid != FIRST && it.ending().is_none());
    let (pages, victim) = others
        .map(|it| (pages(&it), it))
        .max_by_key(|(pages, _)| *pages)?;
    // If files have the memory, the end of a small process would not help.
    let least = system().vm.frames().total() as u64 / PART;
    if pages < least {
        return None;
    }
    let program = victim.program.lock().clone();
    report::report(format_args!(
        "memory is short: process {}, {}, ends, which has most of it: {} KiB",
        victim.pid,
        String::from_utf8_lossy(program.path()),
        pages * (PAGE_SIZE as u64 >> 10),
    ));
    victim.end(Status::killed(Signal::KILL));
    Some(victim)
}

/// The number of pages of a process, in memory and in swap space, private or of shared memory
/// without a file; 0 once it has freed them.
fn pages(process: &Process) -> u64 {
    let stats = process.space().map(|space| space.stats());
    stats.map_or(0, |stats| stats.private + stats.shared + stats.swapped)
}
