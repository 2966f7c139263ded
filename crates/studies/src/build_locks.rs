//! S16: the locks for which the CPUs spin while a kernel is built, and the change when faults leave
//! the big lock (case study 003, its first flame graph).
//!
//! `make -j17` on 16 cores: 17 jobs, each the next compiler as soon as the last has ended, dealt
//! out by the scheduler of OpenBSD 7.0. By processes each job has a make of its own; by threads one
//! make forks them all.

use super::{Aim, Beyond, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::simulated::Band;
use bench::{Failure, Mode};

pub const SYSTEM: System = System {
    name: "S16",
    about: "the locks that CPUs spin for while a kernel is built: build by processes and by \
            threads",
    machines: &["arm64-16"],
    rows,
    beyond: &[Beyond {
        after: Work::processes("build", AFTER, JOBS).over(CPUS).jobs(1),
        why: None,
    }],
};

const JOBS: usize = 17;
const CPUS: usize = 16;
/// Compilers that each job runs one after the other.
const EACH: u64 = 2;
const BEFORE: Preset = Preset::OPENBSD_BIGLOCK;
const AFTER: Preset = Preset::OPENBSD_UNLOCKED;
const MODES: [Mode; 2] = [Mode::Processes, Mode::Threads];

/// `make -j17` on the case study's machine, to its end.
pub(super) const fn make(mode: Mode, preset: Preset) -> Work {
    Work {
        mode,
        ..Work::processes("build", preset, JOBS).over(CPUS).jobs(EACH)
    }
}

/// The same, before the faults are unlocked and after.
pub(super) const fn both(mode: Mode) -> [Work; 2] {
    [make(mode, BEFORE), make(mode, AFTER)]
}

/// The spin locks that the case study names, with its parts of the CPUs' time after the unlocking.
const SPINS: [(&str, f64, &str); 3] = [
    ("KERNEL_LOCK", 0.18, "case study 003: 18% on KERNEL_LOCK()"),
    ("SCHED_LOCK", 0.10, "case study 003: 10% on SCHED_LOCK()"),
    ("pageqlock", 0.12, "case study 003: 12% on UVM's pageqlock"),
];
const OVERALL: &str = "case study 003: overall spinning time is ~40%";
const USER: &str = "case study 003: only 30% of CPU time is spend in userland";
const SHIFT: &str = "case study 003: \"the UVM unlocking diff made the contention shift from the \
     KERNEL_LOCK() to the global pageqlock and per-amap rwlock\"; below 1.2 times is no difference";

const WHY_SCHED: &str = "the simulated compilers sleep too rarely: for their children, and for \
     locks that spinning does not get. If they sleep for 20 us, 160 times a job, as for vnodes, \
     buffers and the disk, it is 6.3 %, with 480 times 22 %; if none spins before it sleeps, 3.7 % \
     (docs/studies/003.md)";
const WHY_THREADS: &str = "17 threads fork, map and fault in one make's space, where the case \
     study's make is one thread: they sleep for its vm_map, and take KERNEL_LOCK again before they \
     go on";

/// Why a lock's part misses, should it.
fn why(mode: Mode, lock: &str) -> &'static str {
    match (mode, lock) {
        (Mode::Processes, "SCHED_LOCK") => WHY_SCHED,
        (Mode::Threads, _) => WHY_THREADS,
        (Mode::Processes, _) => "sizes of the jobs are those of one compiler and one source",
    }
}

/// Spinning for the locks that the case study names.
pub(super) fn spinning(outcome: &Outcome) -> Option<f64> {
    SPINS.iter().map(|(lock, ..)| outcome.waiting(lock)).sum()
}

/// The part of the CPUs' time outside of the kernel.
fn user(outcome: &Outcome) -> Option<f64> {
    let (times, _) = outcome.times.as_ref()?;
    Some(times.user.as_secs_f64() / (times.real.as_secs_f64() * CPUS as f64))
}

fn rwlocks(outcome: &Outcome) -> Option<f64> {
    Some(outcome.waiting("amap")? + outcome.waiting("uobj")? + outcome.waiting("vm_map")?)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    Ok(MODES
        .into_iter()
        .flat_map(|mode| of_mode(lab, mode))
        .collect())
}

fn of_mode(lab: &Lab, mode: Mode) -> Vec<Row> {
    let [before, after] = both(mode).map(Work::watched);
    let by = mode.name();
    let seed = |figure, quote| Aim::Published {
        figure,
        quote,
        band: Band::LAYOUT,
    };
    let share = |what: &str, aim, quantity: &dyn Fn(&Outcome) -> Option<f64>| {
        let row = Row::new(lab, format!("{by}, unlocked: {what}"), aim, |world| {
            world.each(after, quantity)
        })?;
        Some(row.unit(Unit::Share))
    };
    let mut rows = Vec::new();
    // S13 counts the page queues' lock by processes.
    let counted = |lock| mode == Mode::Threads || lock != "pageqlock";
    for (lock, figure, quote) in SPINS.into_iter().filter(|spin| counted(spin.0)) {
        let what = format!("time spinning for {lock}");
        let row = share(&what, seed(figure, quote), &|outcome| outcome.waiting(lock));
        rows.extend(row.map(|row| row.why(why(mode, lock))));
    }
    rows.extend(share(
        "time spinning for the three",
        seed(0.40, OVERALL),
        &spinning,
    ));
    rows.extend(share("time in userland", seed(0.30, USER), &user));
    let left = Aim::Words {
        quote: SHIFT,
        low: 0.0,
        high: 1.0 / 1.2,
    };
    let come = Aim::Words {
        quote: SHIFT,
        low: 1.2,
        high: f64::INFINITY,
    };
    let mut shift = |what: &str, aim, quantity: &dyn Fn(&Outcome) -> Option<f64>| {
        let what = format!("{by}: {what}, unlocked over biglock");
        let row = Row::new(lab, what, aim, |world| {
            world.ratio_of(after, before, quantity)
        });
        rows.extend(row.map(|row| match mode {
            Mode::Threads => row.why(WHY_THREADS),
            Mode::Processes => row,
        }));
    };
    shift("waiting for KERNEL_LOCK", left, &|outcome| {
        outcome.waiting("KERNEL_LOCK")
    });
    shift("waiting for pageqlock", come, &|outcome| {
        outcome.waiting("pageqlock")
    });
    let waited = Aim::Words {
        quote: SHIFT,
        low: 0.001,
        high: 1.0,
    };
    let what = "time waiting for rwlocks of amaps, objects, maps";
    rows.extend(share(what, waited, &rwlocks));
    rows
}
