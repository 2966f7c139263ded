//! One scenario with one seed.
//!
//! The seed chooses the machine's shape and options, and is the seed of all its randomness: the
//! same seed gives the same run and the same failure.

use super::panics;
use super::play::{Play, Scenario, Stage};
use crate::sites::{self, Frame};
use crate::vms;
use machine::Job;
use sched::{Best, Sched};
use sim::profile::Arbitration;
use sim::{Delays, Options, Preempt, Progress, Sim};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// Simulated nanoseconds after which a run counts as endless. Most take less than a millisecond.
/// Those that make spaces and take them apart under heavy delays, or with a switch before every
/// third access, take a thousand and more.
const LIMIT: u64 = 5_000_000_000;

/// One in this many seeds runs a scenario's jobs as tasks that are preempted.
const PREEMPTED: u64 = 3;

/// One in this many seeds runs the jobs on a machine with more CPUs than a word has bits.
const WIDE: u64 = 4;
/// The shapes of such machines, in sockets and cores.
const WIDE_SHAPES: [(usize, usize); 2] = [(1, 65), (3, 43)];
/// The CPUs of such machines that run jobs: those at the ends of words.
const AT_EDGES: [usize; 10] = [0, 1, 2, 62, 63, 64, 65, 126, 127, 128];

/// The time for which a run without end is observed.
const A_WHILE: u64 = 5_000_000;

/// How a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The machine: `4 CPUs, 2x1x2`; `1 CPU, 1x1x1, 3 tasks, preempted`.
    pub machine: String,
    /// True if its jobs were tasks that were preempted.
    pub preempted: bool,
    /// A panic's message and place, or what each task waits for.
    pub what: String,
}

/// Runs `scenario` with `seed`.
///
/// # Errors
/// The failure.
pub fn run(scenario: &Scenario, seed: u64) -> Result<(), Failure> {
    let Choice {
        options,
        jobs,
        places,
        shape,
    } = choose(scenario, seed);
    let preempted = options.preempt.is_some();
    let machine = Sim::new(options).map_err(|error| Failure {
        machine: shape.clone(),
        preempted,
        what: format!("no simulated machine: {error}"),
    })?;
    play(&machine, scenario, jobs, &places).map_err(|what| {
        // SAFETY: the objects made on the machine's CPUs were forgotten with the play.
        unsafe { machine.scrap() };
        Failure {
            machine: shape,
            preempted,
            what,
        }
    })
}

/// Returns true if `seed` runs the scenario's jobs as tasks that are preempted.
pub fn is_preempted(scenario: &Scenario, seed: u64) -> bool {
    choose(scenario, seed).options.preempt.is_some()
}

/// Builds, runs and ends the play, whose jobs begin on the CPUs `places`, in turn.
fn play(machine: &Sim, scenario: &Scenario, jobs: usize, places: &[usize]) -> Result<(), String> {
    let slot = Arc::new(Mutex::new(None));
    let make = {
        let (build, slot, machine) = (scenario.build.clone(), slot.clone(), machine.clone());
        let stage = Stage { machine, jobs };
        move || {
            let play = build(&stage);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(play);
        }
    };
    perform(machine, vec![(0, Box::new(make))])?;
    if jobs > places.len() {
        machine.schedule(Sched::<Sim, Best<Sim>>::new);
    }
    let play = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Play { jobs, end } = play.expect("the build has ended");
    let jobs = places.iter().copied().cycle().zip(jobs);
    if let Err(what) = perform(machine, jobs.collect()) {
        // The objects of the play are in an unknown state.
        std::mem::forget(end);
        return Err(what);
    }
    // A single job has no races, and taking spaces apart takes many accesses.
    machine.calm();
    perform(machine, vec![(0, end)])
}

/// Runs jobs to their end.
fn perform(machine: &Sim, jobs: Vec<(usize, Job)>) -> Result<(), String> {
    let until = machine.time() + LIMIT;
    machine.start_on(jobs);
    let run = AssertUnwindSafe(|| machine.run(until));
    let (outcome, panic) = panics::watched(|| catch_unwind(run));
    let what = match (outcome, panic) {
        // A CPU that unwinds may hang at a lock that another one holds, so the panic is the cause.
        (_, Some(message)) => message,
        (Ok(Progress::Finished), None) => return Ok(()),
        (Ok(Progress::Deadlock(why)), None) => format!("deadlock: {why}"),
        (Ok(Progress::Running), None) => {
            let doing = machine.doing();
            let busy = panics::watched(|| busy(machine)).0;
            format!(
                "no end in {} simulated milliseconds: {doing}{busy}",
                LIMIT / 1_000_000
            )
        }
        (Err(_), None) => "a panic without a message".into(),
    };
    Err(what)
}

/// What keeps the CPUs of a run without end busy: the line that each touches most, and from where.
fn busy(machine: &Sim) -> String {
    machine.trace();
    let look = AssertUnwindSafe(|| machine.run(machine.time() + A_WHILE));
    let _ = catch_unwind(look);
    let mut text = String::new();
    for (cpu, accesses) in machine.traced().iter().enumerate() {
        let Some(most) = accesses.iter().max_by_key(|one| one.reads + one.writes) else {
            continue;
        };
        let _ = write!(text, "\nCPU {cpu}: {}", most.what);
        for Frame { function, place } in sites::frames(&most.sites) {
            let _ = write!(text, ", {function} ({place})");
        }
    }
    text
}

/// The choices of a seed.
struct Choice {
    options: Options,
    /// The number of jobs: one for each of `places`, or more, as tasks that are preempted.
    jobs: usize,
    /// The CPUs on which the jobs begin.
    places: Vec<usize>,
    /// The machine in words.
    shape: String,
}

fn choose(scenario: &Scenario, seed: u64) -> Choice {
    let mut dice = Dice(seed);
    let mut shape = *dice.one_of(&shapes(scenario.jobs.clone()));
    let jobs = shape.0 * shape.1 * shape.2;
    // Random numbers of its own, so that seeds without preemption keep their runs.
    let mut own = Dice(!seed);
    let preempt = (own.below(PREEMPTED) == 0).then(|| {
        shape = *own.one_of(&shapes(1..=jobs - 1));
        Preempt {
            one_in: *own.one_of(&[3, 8, 20, 50]),
        }
    });
    let mut places: Vec<usize> = (0..shape.0 * shape.1 * shape.2).collect();
    // Again random numbers of its own.
    let mut wide = Dice(seed ^ 1 << 63);
    if preempt.is_none() && wide.below(WIDE) == 0 {
        let (sockets, cores) = *wide.one_of(&WIDE_SHAPES);
        shape = (sockets, cores, 1);
        let edges = AT_EDGES.into_iter().filter(|&cpu| cpu < sockets * cores);
        let mut edges: Vec<usize> = edges.collect();
        places.fill_with(|| edges.swap_remove(wide.below(edges.len() as u64) as usize));
    }
    let (sockets, cores, threads) = shape;
    let mut profile = vms::profile(sockets, cores, threads);
    profile.transfer.arbitration = *dice.one_of(&[
        Arbitration::FirstCome,
        Arbitration::Nearest { bypasses: 4 },
        Arbitration::Nearest { bypasses: 100 },
    ]);
    profile.core.store_buffer = *dice.one_of(&[1, 8, profile.core.store_buffer]);
    let mut delays = Delays {
        one_in: *dice.one_of(&[2, 6, 20, 60]),
        most: *dice.one_of(&[60, 400, 3_000, 20_000]),
    };
    if preempt.is_some() {
        // A switch takes dozens of accesses.
        delays.one_in = delays.one_in.max(6);
        delays.most = delays.most.min(3_000);
    }
    let cpus = profile.cpus();
    let options = Options {
        memory: scenario.memory,
        seed,
        spread: *dice.one_of(&[0, 100, 1_000, 10_000]),
        delays: (dice.below(8) > 0).then_some(delays),
        preempt,
        ..Options::new(profile)
    };
    let plural = if cpus == 1 { "" } else { "s" };
    let mut shape = format!("{cpus} CPU{plural}, {sockets}x{cores}x{threads}");
    if options.preempt.is_some() {
        let _ = write!(shape, ", {jobs} tasks, preempted");
    } else if jobs < cpus {
        let _ = write!(shape, ", jobs on {places:?}");
    }
    Choice {
        options,
        jobs,
        places,
        shape,
    }
}

/// Sockets, cores per socket and threads per core of the machines with this many CPUs.
fn shapes(cpus: RangeInclusive<usize>) -> Vec<(usize, usize, usize)> {
    let mut shapes = Vec::new();
    for sockets in 1..=3 {
        for cores in 1..=*cpus.end() {
            for threads in 1..=2 {
                if cpus.contains(&(sockets * cores * threads)) {
                    shapes.push((sockets, cores, threads));
                }
            }
        }
    }
    shapes
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}
