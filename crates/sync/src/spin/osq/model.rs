//! Tasks that enter and leave the queue, under all interleavings.

extern crate std;

use super::Osq;
use crate::locals::QUEUE_PLACES;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomics, Cpus, Execute, Job, SharedCell, Tasks};

struct World {
    queue: Osq<Loomed>,
    /// Written by the task that is first in the queue.
    count: <Loomed as Atomics>::Cell<usize>,
}

/// CPUs enter the queue, and give up after as many looks as `patience` says; `None` never gives up.
fn tasks(preemptions: usize, patience: &'static [Option<u32>]) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let world = Arc::new(World {
            queue: Osq::new(),
            count: SharedCell::new(0),
        });
        let job = |looks: Option<u32>| {
            let world = world.clone();
            Box::new(move || {
                let mut rest = looks;
                let gives_up = || rest.as_mut().is_some_and(spend);
                let first = world.queue.enter(gives_up);
                assert!(first.is_some() || looks.is_some());
                if first.is_some() {
                    // SAFETY: only the first of the queue accesses the count, which the checker
                    // verifies.
                    unsafe { *world.count.write() += 1 };
                    // Other tasks queue meanwhile.
                    Loomed::relax(0);
                }
                drop(first);
                // No task reuses the places of this one, because the checker would not see that the
                // two synchronize.
                Loomed::with_locals(|locals| locals.words[QUEUE_PLACES].set(0));
            }) as Job
        };
        let jobs: Vec<Job> = patience.iter().map(|&looks| job(looks)).collect();
        Loomed::new(jobs.len()).execute(jobs);
        // SAFETY: all are done.
        let count = unsafe { *world.count.read() };
        assert!(count >= 1 && world.queue.enter(|| true).is_some());
    });
}

/// Returns true if nothing was left to spend.
fn spend(rest: &mut u32) -> bool {
    let is_spent = *rest == 0;
    *rest = rest.saturating_sub(1);
    is_spent
}

#[test]
fn one_at_a_time_is_first() {
    tasks(3, &[None, None]);
    tasks(1, &[None, None, None]);
}

#[test]
fn the_last_leaves() {
    tasks(3, &[None, Some(0)]);
    tasks(3, &[Some(1), Some(0)]);
}

/// The middle one leaves while its predecessor hands over, or leaves too, and its successor waits.
#[test]
fn the_middle_leaves() {
    tasks(1, &[None, Some(1), None]);
    tasks(1, &[None, Some(1), Some(1)]);
}

fn found_by(flaw: Flaw, comment: &str, patience: &'static [Option<u32>]) {
    let text = include_str!("../osq.rs");
    let site = Site::after("spin/osq.rs", text, comment);
    let preemptions = if patience.len() == 2 { 3 } else { 1 };
    must_be_found(flaw, site, || tasks(preemptions, patience));
}

#[test]
fn a_turn_that_releases_nothing_is_found() {
    let comment = "Release: pairs with the acquires in `wait` and `cut_off`";
    found_by(Flaw::Relaxed, comment, &[None, None]);
}

#[test]
fn a_last_that_does_not_see_so_is_found() {
    let comment = "Release: pairs with the acquire of a task that finds the queue empty";
    found_by(Flaw::Blind, comment, &[None, None]);
}

#[test]
fn a_link_that_releases_nothing_is_found() {
    let comment = "Release: pairs with the acquire in `successor`, whose caller may write";
    found_by(Flaw::Relaxed, comment, &[None, None]);
    let comment = "Release: pairs with the acquire in `successor`, for what `next` did";
    found_by(Flaw::Relaxed, comment, &[None, Some(1), None]);
}
