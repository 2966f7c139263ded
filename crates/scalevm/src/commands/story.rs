//! `scalevm` without arguments: the story of case study 000, on this computer.
//!
//! Why is munmap single-threaded, and what can an epoch do about it? The same loop on this
//! computer's kernel and on scalevm's VM built three ways, one after the other; the locks that each
//! build takes for one munmap; then the three builds on 96 simulated CPUs, where the story
//! happened.

use super::profile::files;
use super::sweep::{Curve, Sweep};
use crate::output::curves::{self, Series};
use crate::output::sink::Sink;
use crate::output::table::{self, LockUse};
use crate::output::{file, json};
use baselines::Preset;
use bench::os::Os;
use bench::ours::Ours;
use bench::profiling;
use bench::simulated::Simulated;
use bench::tasks::{Affinity, places};
use bench::{Failure, Mode, On, Plan, Running, Schedule, System, Target};
use hosted::Hosted;
use machine::Tasks;
use sim::profile::MachineProfile;
use stats::environment::Environment;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;
use sync::watch::profile;
use workloads::Workload;

/// The file for the results, in the current folder.
const RESULTS: &str = "scalevm-story.jsonl";

/// The file for the results as a page.
const PAGE: &str = "scalevm-story.html";

/// The builds, in the order of the story.
const BUILDS: [Preset; 3] = [Preset::FREEBSD_DI, Preset::FREEBSD_EPOCH, Preset::SCALEVM];

const SCHEDULE: Schedule = Schedule {
    warmup: 1,
    samples: 5,
    duration: Duration::from_millis(400),
};

/// The machine of the story.
const MACHINE: &str = "freebsd-96";
const SIMULATED_COUNTS: [usize; 7] = [1, 4, 8, 12, 24, 48, 96];
/// Each sample is a seed; with fewer than four no rank test can tell two builds apart.
const SIMULATED: Schedule = Schedule {
    warmup: 0,
    samples: 4,
    duration: Duration::from_millis(5),
};
/// The time for which a profile watches.
const WATCHED: Duration = Duration::from_millis(2);

/// Tells it.
pub fn run() -> Result<u8, Failure> {
    let workload = workloads::find("mmap1").expect("mmap1 is built in");
    super::prepare()?;
    file::check(Path::new(PAGE))?;
    println!(
        "Why is munmap single-threaded, and what can we do about it?\n\n\
         {}: {}, by 1, 2, … processes.\n\
         os            this computer's kernel\n\
         freebsd-di    scalevm's VM with FreeBSD's delayed invalidation: one mutex around each \
         munmap\n\
         freebsd-epoch scalevm's VM with epochs in its place; swap is still counted in one place\n\
         scalevm       scalevm's own design: epochs, and swap reserved per CPU\n\
         Policies of all three are chosen at run time, at the same cost.\n",
        workload.name, workload.description
    );
    let sweep = Sweep {
        curves: curves_here(workload),
        counts: counts()?,
        grows: false,
    };
    let file = File::create(RESULTS).map_err(Failure::file(Path::new(RESULTS)))?;
    let mut out = BufWriter::new(file);
    let mut machine = json::machine();
    let (series, failure) =
        sweep.measure(Some((&mut Sink::lines(RESULTS, &mut out), &mut machine)));
    out.flush().map_err(Failure::file(Path::new(RESULTS)))?;
    curves::print(&series);
    if let Some(failure) = failure {
        return Err(failure);
    }
    let code = super::finished();
    if code != 0 {
        return Ok(code);
    }
    println!("\nWhat one iteration (an mmap and a munmap) locks, with 2 processes:");
    let mut rows = Vec::new();
    for preset in BUILDS {
        rows.extend(locks(preset, workload)?);
    }
    println!("{}", table::shared_locks(&rows));
    println!(
        "A lock that all processes share is a line that all CPUs write: on two CPUs it costs\n\
         little, on 96 it is all they do. freebsd-di takes three such locks, twice each;\n\
         epochs take the first away, a reservation per CPU the other two.\n"
    );
    simulate(workload, &mut out, &mut machine)?;
    if super::finished() == 0 {
        profiles(workload, &mut out)?;
        super::report::write(&[RESULTS], Path::new(PAGE))?;
        println!("\nThe page: {PAGE} (curves, flame graphs, locks, this computer).");
    }
    println!(
        "Results: {RESULTS} (one JSON object a line; `scalevm compare` reads it).\n\
         Next: `scalevm compare --workload mmap1 -t 2 freebsd-di scalevm`, `scalevm --help`."
    );
    Ok(super::finished())
}

/// The three builds on the simulated machine of the case study.
fn simulate(
    workload: &'static Workload,
    out: &mut BufWriter<File>,
    machine: &mut Environment,
) -> Result<(), Failure> {
    let profile = MachineProfile::named(MACHINE).expect("built in");
    println!(
        "The same source on a simulated machine: {MACHINE}, {}.\n",
        profile.about
    );
    let curves = BUILDS.map(|preset| {
        let system = System::Sim(simulated(preset).into());
        curve(workload, preset.name, system, SIMULATED)
    });
    let sweep = Sweep {
        curves: curves.into(),
        counts: SIMULATED_COUNTS.to_vec(),
        grows: false,
    };
    let (series, failure) = sweep.measure(Some((&mut Sink::lines(RESULTS, out), machine)));
    out.flush().map_err(Failure::file(Path::new(RESULTS)))?;
    curves::print(&series);
    if let Some(failure) = failure {
        return Err(failure);
    }
    if super::finished() == 0 {
        sweep.explain(&series, false)?;
        let last = |one: &Series| one.curve().last().map_or(0.0, |point| point.1);
        let rates: Vec<f64> = series.iter().map(last).collect();
        println!(
            "with {} processes: freebsd-epoch {:.1} times freebsd-di (case study 000: 3.5 times), \
             scalevm {:.0} times.",
            SIMULATED_COUNTS[SIMULATED_COUNTS.len() - 1],
            rates[1] / rates[0],
            rates[2] / rates[0]
        );
    }
    Ok(())
}

/// Keeps profiles of the first and the last build on all simulated CPUs: for the page's flame
/// graphs and their difference.
fn profiles(workload: &'static Workload, out: &mut BufWriter<File>) -> Result<(), Failure> {
    let plan = Plan {
        workload: workload.into(),
        tasks: SIMULATED_COUNTS[SIMULATED_COUNTS.len() - 1],
        mode: Mode::Processes,
        count: None,
    };
    for preset in [BUILDS[0], BUILDS[2]] {
        let seen = profiling::simulated::of(&simulated(preset), &plan, WATCHED)?;
        writeln!(out, "{}", files::line(&seen)).map_err(Failure::file(Path::new(RESULTS)))?;
    }
    out.flush().map_err(Failure::file(Path::new(RESULTS)))
}

fn simulated(preset: Preset) -> Simulated {
    let machine = MachineProfile::named(MACHINE).expect("built in");
    Simulated::new(preset, machine, 1)
}

/// The numbers of tasks: powers of two up to twice the CPUs; beyond their number tasks take turns.
fn counts() -> Result<Vec<usize>, Failure> {
    let most = (2 * places::cpus()?).min(machine::MAX_CPUS);
    let powers = std::iter::successors(Some(1), |n| Some(2 * n));
    Ok(powers.take_while(|&n| n <= most).collect())
}

/// The curves of this computer: its kernel's, and a build's each.
fn curves_here(workload: &'static Workload) -> Vec<Curve> {
    let (affinity, cpus) = (Affinity::Cores, None);
    let os = System::Os(Os { affinity });
    let ours = BUILDS.map(|preset| {
        let system = System::Hosted(Ours {
            preset,
            affinity,
            cpus,
        });
        curve(workload, preset.name, system, SCHEDULE)
    });
    let os = curve(workload, On::Os.name(), os, SCHEDULE);
    std::iter::once(os).chain(ours).collect()
}

fn curve(
    workload: &'static Workload,
    label: &'static str,
    system: System,
    schedule: Schedule,
) -> Curve {
    Curve {
        workload: workload.into(),
        mode: Mode::Processes,
        label,
        system,
        schedule,
    }
}

/// Runs the workload on a build with its locks watched.
fn locks(preset: Preset, workload: &'static Workload) -> Result<Vec<LockUse>, Failure> {
    const TASKS: usize = 2;
    let target = Ours {
        preset,
        affinity: Affinity::Cores,
        cpus: None,
    };
    let plan = Plan {
        workload: workload.into(),
        tasks: TASKS,
        mode: Mode::Processes,
        count: None,
    };
    let out_of_memory = |_| Failure::start("lock profile")(std::io::ErrorKind::OutOfMemory.into());
    let profile = profile::of(Hosted::anchor());
    profile.reset();
    let mut running = target.start(&plan)?;
    let iterations_so_far = |running: &dyn Running| {
        let mut counts = [0; TASKS];
        running.counts(&mut counts);
        counts.iter().sum::<u64>()
    };
    let before = iterations_so_far(&*running);
    profile.start(TASKS).map_err(out_of_memory)?;
    running.advance(Duration::from_millis(400));
    profile.stop();
    let iterations = (iterations_so_far(&*running) - before).max(1) as f64;
    running.stop()?;
    let mut classes: Vec<(&'static str, u64, u64)> = Vec::new();
    for row in profile.report() {
        match classes.iter_mut().find(|class| class.0 == row.class) {
            Some(class) => {
                class.1 += row.acquisitions;
                class.2 += row.contended;
            }
            None => classes.push((row.class, row.acquisitions, row.contended)),
        }
    }
    let used = classes
        .into_iter()
        .filter(|class| class.1 as f64 > iterations / 10.0);
    let mut used: Vec<LockUse> = used
        .map(|(class, acquisitions, contended)| LockUse {
            build: preset.name,
            class,
            shared_by: shared_by(class),
            per_iteration: acquisitions as f64 / iterations,
            contended: contended as f64 / acquisitions as f64,
        })
        .collect();
    used.sort_by_key(|lock| (lock.shared_by, lock.class));
    Ok(used)
}

/// The owner of the locks of a class.
fn shared_by(class: &str) -> &'static str {
    match class {
        "space map" | "pmap" | "slot" => "the process",
        "page pv" => "the page",
        "frame cache" => "the CPU",
        _ => "all processes",
    }
}
