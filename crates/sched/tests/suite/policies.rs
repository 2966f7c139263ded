//! Common properties of the systems' schedulers: all tasks run to their end, equal tasks get equal
//! shares, one that mostly sleeps runs soon after it wakes, idle CPUs get work.

use crate::support;

use machine::{Clock, Cpus, Execute, Job, Pinned, Tasks, conformance};
use sched::Policy;
use sched::freebsd::Ule;
use sched::linux::Cfs;
use sched::openbsd::OpenBsd;
use sim::Sim;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use support::{machine, quiet, with_delays};

const MS: u64 = 1_000_000;

// The policies' words in a task.
const _: () = assert!(size_of::<sched::openbsd::Entry<Sim>>() == 56);
const _: () = assert!(size_of::<sched::freebsd::Entry<Sim>>() == 72);
const _: () = assert!(size_of::<sched::linux::Entry<Sim>>() == 72);

/// Work in user mode.
fn work(nanoseconds: u64) {
    sim::compute(nanoseconds as f64);
}

/// Tasks that work, yield, sleep and wake each other, three to a CPU.
fn all_end<P: Policy<Sim>>() {
    for options in [
        quiet(4, 0),
        with_delays(4, 1),
        with_delays(3, 2),
        quiet(1, 3),
    ] {
        let sim = machine::<P>(options);
        let jobs = (0..12).map(|task| {
            Box::new(move || {
                for round in 0..20 {
                    work(200_000 + 10_000 * task);
                    match (task + round) % 3 {
                        0 => Sim::yield_now(),
                        1 => Sim::sleep_until(Sim::now() + 300_000),
                        _ => {
                            Sim::unpark(Sim::current_task());
                            Sim::park();
                        }
                    }
                }
            }) as Job
        });
        sim.execute(jobs.collect());
    }
}

/// Pairs of tasks pass a turn back and forth across CPUs, while others come and go: no wake-up is
/// lost, wherever the CPUs are at that moment.
fn nothing_is_lost<P: Policy<Sim>>() {
    for seed in 0..6 {
        let sim = machine::<P>(with_delays(1 + seed as usize, seed));
        let mut jobs: Vec<Job> = Vec::new();
        for pair in 0..6 {
            let turn = Arc::new(AtomicU64::new(0));
            let names = Arc::new([const { OnceLock::new() }; 2]);
            for side in 0..2 {
                let (turn, names) = (turn.clone(), names.clone());
                jobs.push(Box::new(move || {
                    names[side].get_or_init(Sim::current_task);
                    for round in 0..60 {
                        while turn.load(Relaxed) != 2 * round + side as u64 {
                            Sim::park();
                        }
                        work(1_000 * (1 + pair));
                        turn.fetch_add(1, Relaxed);
                        if let Some(&other) = names[1 - side].get() {
                            Sim::unpark(other);
                        }
                    }
                }));
            }
        }
        jobs.push(Box::new(|| {
            for _ in 0..30 {
                Sim::sleep_until(Sim::now() + 100_000);
                Sim::yield_now();
                work(30_000);
            }
        }));
        sim.execute(jobs);
    }
}

/// The machine's contract, by way of the policy.
fn contract<P: Policy<Sim>>() {
    for options in [
        quiet(4, 0),
        with_delays(4, 1),
        with_delays(5, 2),
        with_delays(2, 3),
    ] {
        let machine = machine::<P>(options);
        let run = |jobs| machine.execute(jobs);
        conformance::outnumber::<Sim>(&run);
        // Slices here are up to 100 ms.
        let compute = |time| work(100 * time);
        conformance::pins::<Sim>(&run, compute, compute);
        conformance::wake_ups::<Sim>(&run);
    }
}

/// The units of work that each of `tasks`, which are equal, does in `time`.
fn shares<P: Policy<Sim>>(cpus: usize, tasks: usize, time: u64) -> Vec<u64> {
    let sim = machine::<P>(quiet(cpus, 0));
    let done = Arc::new((0..tasks).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let jobs = (0..tasks).map(|task| {
        let done = done.clone();
        Box::new(move || {
            while Sim::now() < time {
                work(MS / 10);
                done[task].fetch_add(1, Relaxed);
            }
        }) as Job
    });
    sim.execute(jobs.collect());
    done.iter().map(|done| done.load(Relaxed)).collect()
}

fn equal<P: Policy<Sim>>() {
    let shares = shares::<P>(2, 6, 3_000 * MS);
    let (least, most) = (shares.iter().min(), shares.iter().max());
    let (least, most) = (*least.expect("six"), *most.expect("six"));
    assert!(most * 4 <= least * 5, "{shares:?}");
    let all: u64 = shares.iter().sum();
    assert!(all > 2 * 30_000 * 9 / 10, "the CPUs were busy: {shares:?}");
}

/// How late, on average, a task runs that alternately sleeps 20 ms and works 1 ms, while three hogs
/// compute on the same CPU.
fn lateness<P: Policy<Sim>>() -> u64 {
    const TIME: u64 = 3_000 * MS;
    let sim = machine::<P>(quiet(1, 0));
    let late = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let sum = late.clone();
    let sleeper = move || {
        while Sim::now() < TIME {
            let time = Sim::now() + 20 * MS;
            Sim::sleep_until(time);
            sum.0.fetch_add(Sim::now() - time, Relaxed);
            sum.1.fetch_add(1, Relaxed);
            work(MS);
        }
    };
    let hog = || {
        while Sim::now() < TIME {
            work(MS / 10);
        }
    };
    let mut jobs: Vec<Job> = vec![Box::new(sleeper)];
    jobs.extend((0..3).map(|_| Box::new(hog) as Job));
    sim.execute(jobs);
    late.0.load(Relaxed) / late.1.load(Relaxed)
}

/// Tasks that one CPU makes run everywhere: eight of 100 ms take hardly longer than they must.
fn spread<P: Policy<Sim>>() {
    const CPUS: usize = 4;
    let sim = machine::<P>(quiet(CPUS, 0));
    let jobs = (0..8).map(|_| (0, Box::new(|| work(100 * MS)) as Job));
    sim.start_on(jobs.collect());
    assert!(matches!(sim.run(10_000 * MS), sim::Progress::Finished));
    let least = 8 / CPUS as u64 * 100;
    let took = sim.time() / MS;
    assert!(took <= least * 3 / 2, "{took} ms instead of {least}");
}

/// Runs eight tasks on two CPUs, each as long as `times` says in ms. Returns which began on CPU 0,
/// and how long all took.
fn eight<P: Policy<Sim>>(times: [u64; 8]) -> ([bool; 8], u64) {
    let sim = machine::<P>(quiet(2, 0));
    let first = Arc::new([const { AtomicU64::new(0) }; 8]);
    let job = |(task, time): (usize, u64)| {
        let first = first.clone();
        Box::new(move || {
            first[task].store(Sim::pin().cpu().index() as u64, Relaxed);
            work(time * MS);
        }) as Job
    };
    sim.execute(times.into_iter().enumerate().map(job).collect());
    let began = std::array::from_fn(|task| first[task].load(Relaxed) == 0);
    (began, sim.time() / MS)
}

/// A CPU that runs out of tasks takes one of another CPU's: the same run again, where those on CPU
/// 1 end soon.
fn takes<P: Policy<Sim>>() {
    let (on_first, _) = eight::<P>([300; 8]);
    let long = on_first.into_iter().filter(|&is| is).count() as u64;
    assert!((3..=5).contains(&long), "{long} on one of two CPUs");
    let (_, took) = eight::<P>(on_first.map(|long| if long { 300 } else { 10 }));
    assert!(took <= long * 300 * 3 / 4, "{took} ms for {long} tasks");
}

macro_rules! policies {
    ($($name:ident: $policy:ty, late $late:expr;)*) => {$(
        mod $name {
            use super::*;
            #[test]
            fn all_tasks_end() {
                all_end::<$policy>();
            }
            #[test]
            fn no_wake_up_is_lost() {
                nothing_is_lost::<$policy>();
            }
            #[test]
            fn the_contract_holds() {
                contract::<$policy>();
            }
            #[test]
            fn equal_tasks_get_equal_shares() {
                equal::<$policy>();
            }
            #[test]
            fn a_sleeper_runs_soon_after_it_wakes() {
                let late = lateness::<$policy>();
                assert!(late <= $late, "{late} ns late");
            }
            #[test]
            fn a_cpu_without_tasks_takes_one() {
                takes::<$policy>();
            }
            #[test]
            fn idle_cpus_get_work() {
                spread::<$policy>();
            }
        }
    )*};
}

policies! {
    openbsd: OpenBsd<Sim>, late MS / 10;
    freebsd: Ule<Sim>, late MS / 10;
    linux: Cfs<Sim>, late MS / 10;
}
