//! A policy may hold its lock across a switch, and ended tasks' places are reused.

use crate::support;

use crate::fifo;

use fifo::Fifo;
use machine::{Atomic, Execute, Ordering, conformance};
use sched::Sched;
use sim::Sim;
use support::{machine, quiet, spread, with_delays};

#[test]
fn contexts() {
    for options in [
        quiet(4, 0),
        with_delays(4, 1),
        with_delays(4, 2),
        with_delays(3, 3),
    ] {
        let machine = machine::<Fifo<Sim>>(options);
        let run = |jobs| machine.execute(jobs);
        conformance::outnumber::<Sim>(&run);
        let compute = |time| sim::compute(time as f64);
        conformance::pins::<Sim>(&run, compute, compute);
        conformance::wake_ups::<Sim>(&run);
    }
}

/// Each CPU may keep some free places for itself.
#[test]
fn places_of_ended_tasks_are_used_again() {
    const CPUS: usize = 2;
    let sim = Sim::new(quiet(CPUS, 0)).expect("address space");
    let places = std::sync::Arc::new(std::sync::Mutex::new(None));
    let tell = places.clone();
    sim.schedule(move |cpus| {
        let sched = Sched::<Sim, Fifo<Sim>>::new(cpus);
        *tell.lock().expect("no panic") = Some(sched.policy().places.clone());
        sched
    });
    for _ in 0..40 {
        spread(&sim, 100, |_| Box::new(|| sim::compute(100.0)));
    }
    let places = places.lock().expect("no panic").take().expect("told");
    let places = places.load(Ordering::Relaxed);
    assert!((100..=100 + 48 * CPUS).contains(&places), "{places} places");
}
