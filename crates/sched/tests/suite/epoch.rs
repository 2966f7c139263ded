//! How long a wait for an epoch's readers lasts when tasks outnumber CPUs.
//!
//! A reader that is preempted within its section delays waiters until it runs again. A section of
//! [`Domain`] is a pin, so its reader is not preempted; a section of [`Sleepable`], like one of
//! FreeBSD's preemptible epochs, does not pin.

use crate::support;

use machine::{Atomic, Clock, Job, Ordering, Topology};
use sched::freebsd::Ule;
use sched::{Best, Policy};
use sim::{Progress, Sim};
use support::{MICRO, MILLI, machine, quiet, shared, words};
use sync::epoch::{Domain, Sleepable};

const CPUS: usize = 2;
const READERS: usize = 10;
const WAITS: usize = 60;
/// Nanoseconds in a section, and between two.
const INSIDE: u64 = 50 * MICRO;
const OUTSIDE: u64 = 20 * MICRO;

/// The longest of some waits while readers run, in nanoseconds.
fn longest<P: Policy<Sim>, D: Send + Sync + 'static>(
    domain: impl FnOnce(&Sim) -> D + Send + 'static,
    read: fn(&D),
    wait: fn(&D),
) -> u64 {
    let sim = machine::<P>(quiet(CPUS, 1));
    let maker = sim.clone();
    let domain = shared(&sim, move || domain(&maker));
    // A flag that the waits are over, and the longest wait.
    let words = words(&sim, 2);
    let reader = |_| -> Job {
        let (domain, words) = (domain.clone(), words.clone());
        Box::new(move || {
            while words[0].load(Ordering::Relaxed) == 0 {
                read(&domain);
                sim::compute(OUTSIDE as f64);
            }
        })
    };
    let mut jobs: Vec<Job> = (0..READERS).map(reader).collect();
    let (waiter, seen) = (domain.clone(), words.clone());
    jobs.push(Box::new(move || {
        let times = (0..WAITS).map(|_| {
            sim::compute(OUTSIDE as f64);
            let began = Sim::now();
            wait(&waiter);
            Sim::now() - began
        });
        seen[1].store(times.max().expect("waits"), Ordering::Relaxed);
        seen[0].store(1, Ordering::Relaxed);
    }));
    sim.start(jobs);
    assert_eq!(sim.run(30_000 * MILLI), Progress::Finished);
    words[1].load(Ordering::Relaxed)
}

fn pinned<P: Policy<Sim>>() -> u64 {
    let read = |domain: &Domain<Sim>| {
        let _section = domain.enter();
        sim::compute(INSIDE as f64);
    };
    let domain = |sim: &Sim| Domain::<Sim>::new(sim.cpus());
    longest::<P, _>(domain, read, |domain| domain.wait())
}

fn preemptible<P: Policy<Sim>>() -> u64 {
    let read = |domain: &Sleepable<Sim>| {
        let _section = domain.enter();
        sim::compute(INSIDE as f64);
    };
    let domain = |sim: &Sim| Sleepable::<Sim>::new(sim.cpus()).expect("memory");
    longest::<P, _>(domain, read, |domain| domain.wait())
}

#[test]
fn a_reader_that_is_pinned_holds_up_nobody_for_longer_than_its_section() {
    let waited = pinned::<Best<Sim>>();
    println!("pinned, best: {} µs", waited / MICRO);
    assert!(waited < 2 * INSIDE, "{waited}");
}

#[test]
fn a_reader_that_may_leave_its_cpu_holds_up_a_wait_until_it_is_back() {
    // It ends all the same, because the waiter lets others run: on its CPU are some of the readers.
    for (name, waited) in [
        ("best", preemptible::<Best<Sim>>()),
        ("freebsd", preemptible::<Ule<Sim>>()),
    ] {
        println!("preemptible, {name}: {} µs", waited / MICRO);
        assert!(
            (10 * MILLI..1_000 * MILLI).contains(&waited),
            "{name}: {waited}"
        );
    }
}
