//! When no memory is left: the process with most of it ends.

use super::{FIRST, PROCESSES, Process, Signal, Status, with_current};
use crate::system::system;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use machine::{Clock, PAGE_SIZE};
use metal::{Metal, report};

/// How long to wait for the process to end, and how often to check, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
const NAP: u64 = 1_000_000;
/// A process that is to end has at least this part of all memory.
const PART: u64 = 256;

/// Ends a process and waits until its memory is free; returns whether another try is worthwhile.
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

/// A process that is ending, and still has memory.
fn ending() -> Option<Arc<Process>> {
    let ends = |it: &Arc<Process>| it.ending().is_some() && pages(it) > 0;
    PROCESSES.all().find(ends)
}

/// The process with most pages, which ends from now on; it is named on the report channel.
fn choose() -> Option<Arc<Process>> {
    let all = PROCESSES.all();
    let others = all.filter(|it| it.pid != FIRST && it.ending().is_none());
    let (pages, victim) = others
        .map(|it| (pages(&it), it))
        .max_by_key(|(pages, _)| *pages)?;
    // Where files have the memory, the end of a small process would not help.
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

/// The pages that a process has, in memory and in swap space, private ones and those of shared
/// memory without a file; 0 once it has given them back.
fn pages(process: &Process) -> u64 {
    let stats = process.space().map(|space| space.stats());
    stats.map_or(0, |stats| stats.private + stats.shared + stats.swapped)
}
