//! What costs a task nothing: time that it gets back, and lines that are at hand.

use crate::support;

use machine::{Atomic, AtomicInt, Atomics, Clock, Cpus, Job, Ordering};
use sim::Sim;
use std::sync::Arc;
use support::{Line, finish, machine, profile, shared};

/// The time inside and outside the lock, in nanoseconds, and how often.
const INSIDE: f64 = 1_000.0;
const OUTSIDE: f64 = 3_000.0;
const TIMES: usize = 50;

/// Takes a spin lock.
fn acquire(lock: &Line) {
    while lock.0.swap(1, Ordering::Acquire) == 1 {
        Sim::spin_until(|| lock.0.load(Ordering::Relaxed) == 0);
    }
}

/// The time in nanoseconds that each of `tasks` takes per round of a section under one lock and
/// work of its own, if the lock is `refunded` or not; and the sections that were not exclusive.
fn round(tasks: usize, refunded: bool) -> (f64, u64) {
    let sim = machine(&profile("freebsd-96"), 0);
    let lock: Arc<(Line, Line, Line)> = shared(&sim);
    let job = |_| {
        let lock = lock.clone();
        let job = move || {
            let (word, inside, wrong) = &*lock;
            for _ in 0..TIMES {
                if refunded {
                    sim::forfeit();
                    sim::begin_refund(false);
                    acquire(word);
                    sim::end_refund();
                } else {
                    acquire(word);
                }
                let others = inside.0.fetch_add(1, Ordering::Relaxed);
                wrong.0.fetch_add(others, Ordering::Relaxed);
                sim::compute(INSIDE);
                inside.0.fetch_sub(1, Ordering::Relaxed);
                if refunded {
                    sim::begin_refund(true);
                    word.0.store(0, Ordering::Release);
                    sim::end_refund();
                } else {
                    word.0.store(0, Ordering::Release);
                }
                sim::compute(OUTSIDE);
            }
        };
        Box::new(job) as Job
    };
    let jobs = (0..tasks).map(|task| (task, job(task)));
    let time = finish(&sim, jobs.collect()) as f64 / TIMES as f64;
    (
        time,
        sim.on_cpu(0, move || lock.2.0.load(Ordering::Relaxed)),
    )
}

/// With the lock, a task in eight waits for the seven others' sections; without its cost each is as
/// fast as alone but for the lines of the section, and still only one is inside.
#[test]
fn a_refunded_lock_excludes_and_costs_nothing() {
    let (alone, _) = round(1, false);
    let (with, _) = round(8, false);
    let (without, wrong) = round(8, true);
    assert!(with > 1.9 * alone, "{alone:.0}, {with:.0} ns");
    let near = 0.95 * alone..1.2 * alone;
    assert!(near.contains(&without), "{alone:.0}, {without:.0} ns");
    assert_eq!(wrong, 0, "tasks met inside");
    // Never faster than without the acquisition.
    let (free, _) = round(1, true);
    assert!(free > INSIDE + OUTSIDE && free <= alone, "{free:.0} ns");
}

/// Credit is as much as the wait, is spent on work, and can be forfeited.
#[test]
fn credit_pays_for_work_once() {
    let sim = machine(&profile("freebsd-96"), 0);
    let times = sim.on_cpu(0, || {
        let timed = |work: &dyn Fn()| {
            let from = Sim::now();
            work();
            Sim::now() - from
        };
        let wait = || {
            sim::begin_refund(false);
            sim::begin_refund(false);
            sim::end_refund();
            let from = Sim::now();
            Sim::spin_until(|| Sim::now() > from + 1_000);
            sim::end_refund();
        };
        let waited = timed(&wait);
        let first = timed(&|| sim::compute(600.0));
        let rest = timed(&|| sim::compute(2_000.0));
        wait();
        sim::forfeit();
        (waited, first, rest, timed(&|| sim::compute(600.0)))
    });
    let (waited, first, rest, forfeited) = times;
    assert!((1_000..2_000).contains(&waited), "{waited}");
    assert_eq!(first, 0, "the credit is enough");
    assert_eq!(rest, 2_600 - waited, "the rest of the credit");
    assert_eq!(forfeited, 600, "no credit is left");
}

/// A counter that is at hand everywhere costs what a private one costs.
#[test]
fn lines_at_hand_take_no_time() {
    let time = |tasks: usize, at_hand: &[&str]| {
        let sim = machine(&profile("freebsd-96"), 0);
        sim.keep_at_hand(at_hand.iter().map(|&name| name.to_owned()).collect());
        let counter: Arc<Line> = sim.on_cpu(0, || {
            let counter = Arc::new(Line::default());
            Sim::label_value(&*counter, "counter");
            counter
        });
        let job = |counter: Arc<Line>| {
            let job = move || {
                for _ in 0..100 {
                    counter.0.fetch_add(1, Ordering::Relaxed);
                }
            };
            Box::new(job) as Job
        };
        let jobs = (0..tasks).map(|task| (task, job(counter.clone())));
        let time = finish(&sim, jobs.collect());
        let total = sim.on_cpu(0, move || counter.0.load(Ordering::Relaxed));
        assert_eq!(total, 100 * tasks as u64, "no count is lost");
        time
    };
    let (alone, shared, at_hand) = (time(1, &[]), time(24, &[]), time(24, &["counter"]));
    assert!(shared > 10 * alone, "{alone}, {shared} ns");
    assert!(at_hand < 2 * alone, "{alone}, {at_hand} ns");
    assert_eq!(time(24, &["another"]), shared);
}
