//! Simulated time is that of the profile.

use crate::support;

use machine::{Atomic, AtomicInt, Clock, Job, Ordering};
use sim::Sim;
use sim::profile::{Class, MachineProfile};
use std::hint::black_box;
use support::{Jobs, Line, compute_until, finish, machine, profile, shared, wait_for};
use sync::RawLock;
use sync::spin::Ticket;

const ROUNDS: u64 = 100;

/// Jobs for two CPUs, given the first one.
fn two(a: usize, b: usize, side: impl Fn(u64) -> Job) -> Jobs {
    vec![(a, side(0)), (b, side(1))]
}

/// Picoseconds that a CPU waits for a line that another wrote last and has long since finished
/// with: they take turns by the clock.
fn transfer(profile: &MachineProfile, a: usize, b: usize) -> u64 {
    /// Nanoseconds, longer than any transfer.
    const SLOT: u64 = 10_000;
    let sim = machine(profile, 0);
    let line = shared::<Line>(&sim);
    let jobs = two(a, b, |me| {
        let line = line.clone();
        Box::new(move || {
            for round in 0..ROUNDS {
                compute_until((2 * round + me + 1) * SLOT);
                line.0.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    finish(&sim, jobs);
    let waited: u64 = [a, b].map(|cpu| sim.times()[cpu].fetching).iter().sum();
    // No CPU had the line before the first.
    waited / (2 * ROUNDS - 1)
}

#[test]
fn a_ping_pong_returns_the_distance_table_exactly() {
    for profile in MachineProfile::all() {
        let mut seen: Vec<Class> = Vec::new();
        for b in 1..profile.cpus() {
            let class = profile.distance(0, b);
            if !seen.contains(&class) {
                seen.push(class);
                let (found, said) = (transfer(&profile, 0, b), profile.latency(0, b));
                assert_eq!(found, said, "{}, CPUs 0 and {b}: {class:?}", profile.name);
            }
        }
        assert!(!seen.is_empty(), "{}", profile.name);
    }
}

/// CPUs of one cluster that request a line at the same time, which another CPU has written: the
/// readers are served one after the other, and a writer when the last of them has its data.
#[test]
fn nobody_reads_or_writes_a_line_before_its_data_arrive() {
    const READERS: [usize; 3] = [1, 2, 3];
    const WRITER: usize = 4;
    const AT: u64 = 10_000;
    let profile = profile("freebsd-96");
    let one_way = profile.latency(0, 1);
    let sim = machine(&profile, 0);
    let line = shared::<Line>(&sim);
    let job = |cpu: usize, at: u64, writes: bool| {
        let line = line.clone();
        let job = move || {
            compute_until(at);
            if writes {
                line.0.fetch_add(1, Ordering::Relaxed)
            } else {
                line.0.load(Ordering::Relaxed)
            };
        };
        (cpu, Box::new(job) as Job)
    };
    let readers = READERS.map(|cpu| job(cpu, AT, false));
    // Half-way to the first reader; in nanoseconds.
    let writer = job(WRITER, AT + one_way / 2_000, true);
    finish(
        &sim,
        [job(0, 0, true), writer]
            .into_iter()
            .chain(readers)
            .collect(),
    );
    let fetched = |cpu: usize| sim.times()[cpu].fetching;
    let mut times = READERS.map(fetched);
    times.sort_unstable();
    assert_eq!(times[0], one_way, "the first reader");
    let occupancy = profile.transfer.read_occupancy.cluster;
    for pair in times.windows(2) {
        assert!(
            pair[1] >= pair[0] + occupancy,
            "{times:?}, {occupancy} each"
        );
    }
    let written = fetched(WRITER) + one_way / 2;
    assert!(
        written > times[2] + one_way / 2,
        "{written} after {times:?}"
    );
}

#[test]
fn hits_and_locked_instructions_cost_what_the_core_says() {
    let profile = profile("freebsd-96");
    let core = profile.core.clone();
    let sim = machine(&profile, 0);
    // Nanoseconds for a thousand: picoseconds for one.
    let (load, locked) = sim.on_cpu(0, || {
        let own = Line::default();
        let time = |access: &dyn Fn() -> u64| {
            black_box(access());
            let before = Sim::now();
            for _ in 0..1000 {
                black_box(access());
            }
            Sim::now() - before
        };
        let load = time(&|| own.0.load(Ordering::Relaxed));
        (load, time(&|| own.0.fetch_add(1, Ordering::Relaxed)))
    });
    assert!(load.abs_diff(core.instruction + core.hit) <= 1, "{load}");
    let expected = core.instruction + core.hit + core.rmw;
    assert!(locked.abs_diff(expected) <= 1, "{locked}");
}

/// Two CPUs that wait for each other's writes, as users measure it. Each one-way trip is a read and
/// a write. A request may wait at the directory for the line, so that its own travel costs nothing;
/// a look comes up to half a pause late.
#[test]
fn a_ping_pong_of_spinners_is_near_the_table() {
    let profile = profile("freebsd-96");
    for b in [48, 1, 24] {
        let sim = machine(&profile, 0);
        let line = shared::<Line>(&sim);
        let jobs = two(0, b, |me| {
            let line = line.clone();
            Box::new(move || {
                for turn in (me..2 * ROUNDS).step_by(2) {
                    wait_for(&line, turn);
                    line.0.swap(turn + 1, Ordering::Release);
                }
            })
        });
        let leg = finish(&sim, jobs) * 1000 / (2 * ROUNDS);
        let (core, transfers) = (&profile.core, 2 * profile.latency(0, b));
        let besides = core.pause + core.rmw + 4 * (core.hit + core.instruction);
        let said = transfers * 6 / 10..=transfers + besides;
        assert!(
            said.contains(&leg),
            "CPUs 0 and {b}: {leg} ps, not {said:?}"
        );
    }
}

#[derive(Default)]
struct Locked {
    lock: Lock,
    line: Line,
}

struct Lock(Ticket<Sim>);

impl Default for Lock {
    fn default() -> Self {
        Lock(Ticket::new())
    }
}

/// Nanoseconds for CPUs on both sockets that do nothing but lock, write, unlock.
fn contended(profile: &MachineProfile) -> u64 {
    let sim = machine(profile, 0);
    let site = shared::<Locked>(&sim);
    let job = |index: usize| {
        let site = site.clone();
        let job = move || {
            for _ in 0..200 {
                site.lock.0.lock();
                site.line.0.fetch_add(1, Ordering::Relaxed);
                // SAFETY: locked above, by this call.
                unsafe { site.lock.0.unlock(()) };
            }
        };
        (3 * index, Box::new(job) as Job)
    };
    finish(&sim, (0..16).map(job).collect())
}

/// The machine with every cost of a lock multiplied by `factor`.
fn scaled(profile: &MachineProfile, factor: u64) -> MachineProfile {
    let mut scaled = profile.clone();
    let (transfer, core) = (&mut scaled.transfer, &mut scaled.core);
    let readers = &mut transfer.read_occupancy;
    let costs = [
        &mut transfer.sibling,
        &mut transfer.cluster,
        &mut transfer.socket,
        &mut transfer.invalidate_per_sharer,
        &mut readers.sibling,
        &mut readers.cluster,
        &mut readers.socket,
        &mut core.hit,
        &mut core.rmw,
        &mut core.fence,
        &mut core.pause,
        &mut core.instruction,
    ];
    let hops = transfer.hops.iter_mut().chain(&mut readers.hops);
    costs
        .into_iter()
        .chain(hops)
        .for_each(|cost| *cost *= factor);
    scaled
}

#[test]
fn doubling_all_latencies_doubles_contended_time() {
    let profile = profile("freebsd-96");
    let once = contended(&profile) as f64;
    let ratio = contended(&scaled(&profile, 2)) as f64 / once;
    assert!((1.98..=2.02).contains(&ratio), "{ratio}");
}
