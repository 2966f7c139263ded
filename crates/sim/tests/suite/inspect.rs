//! A look for an assertion takes no time, and sees what the CPU sees.

use crate::support;

use machine::{Atomic, Atomics, Clock, Ordering};
use sim::Sim;
use std::sync::Arc;
use support::{Jobs, Line, finish, machine, profile, shared};

/// Runs `job` on CPU 0, after CPU 1 has written the line.
fn after_another(job: impl FnOnce(&Line) + Send + 'static) {
    let sim = machine(&profile("pc-16c32t"), 1);
    let line: Arc<Line> = shared(&sim);
    let theirs = line.clone();
    let jobs: Jobs = vec![
        (1, Box::new(move || theirs.0.store(1, Ordering::Relaxed))),
        (
            0,
            Box::new(move || {
                sim::compute(5_000.0);
                job(&line);
            }),
        ),
    ];
    finish(&sim, jobs);
}

#[test]
fn a_look_takes_no_time_and_moves_no_line() {
    after_another(|line| {
        let before = Sim::now();
        Sim::inspect(|| line.0.load(Ordering::Acquire) == 1);
        assert_eq!(Sim::now(), before);
        line.0.load(Ordering::Acquire);
        let loaded = Sim::now();
        assert!(loaded > before, "the line was still the other CPU's");
        assert!(Sim::inspect(|| line.0.load(Ordering::Acquire) == 1));
        assert!(!Sim::inspect(|| line.0.load(Ordering::Acquire) == 2));
        assert_eq!(Sim::now(), loaded);
    });
}

#[test]
fn a_look_waits_for_no_store_and_trusts_none() {
    after_another(|line| {
        line.0.store(2, Ordering::Release);
        assert!(
            Sim::inspect(|| line.0.load(Ordering::Acquire) == 2),
            "the CPU's own store"
        );
        Sim::fence(Ordering::SeqCst);
        assert!(!Sim::inspect(|| line.0.load(Ordering::Acquire) == 1));
    });
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a broken promise")]
fn what_does_not_hold_panics_on_its_cpu() {
    after_another(|line| {
        machine::invariant!(Sim: line.0.load(Ordering::Acquire) == 7, "a broken promise");
    });
}
