//! When no memory is left: the process with most of it ends.

use super::{Process, Signal, Status, with_current};
use crate::system::system;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use machine::{Clock, PAGE_SIZE};
use metal::{Metal, report};

/// How long to wait for the process to end, and how often to check, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
const NAP: u64 = 1_000_000;
/// The first process does not end.
const FIRST: u32 = 1;

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
    system().processes.all().into_iter().find(ends)
}

/// The process with most pages, which ends from now on; it is named on the report channel.
fn choose() -> Option<Arc<Process>> {
    let all = system().processes.all().into_iter();
    let others = all.filter(|it| it.pid != FIRST && it.ending().is_none());
    let (pages, victim) = others
        .map(|it| (pages(&it), it))
        .max_by_key(|(pages, _)| *pages)?;
    if pages == 0 {
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

/// A process's pages in memory and in swap space; 0 once it has given them back.
fn pages(process: &Process) -> u64 {
    let stats = process.space().map(|space| space.stats());
    stats.map_or(0, |stats| stats.private + stats.swapped)
}
