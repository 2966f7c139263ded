//! `scalevm scaling`: how workloads scale on simulated machines.

use crate::cli::ScalingArgs;
use crate::output::format;
use crate::output::progress::Progress;
use crate::output::scaling::{self, Point, Row};
use bench::simulated::{AT_ONCE, Conditions, Simulated};
use bench::{Failure, Mode, Plan, Target, Workers};
use sim::profile::MachineProfile;
use std::collections::BTreeMap;
use std::time::Duration;

/// The default workloads.
const WORKLOADS: [&str; 8] = [
    "mmap1",
    "mmap2",
    "page_fault1",
    "page_fault2",
    "page_fault3",
    "brk1",
    "fork1",
    "build",
];

/// Iterations of a task alone by which it is known how long one takes.
const TRIED: u64 = 32;
/// The number of iterations that a run lasts, and the bounds of that time for up to [`USUAL`]
/// tasks: more of them take longer to get past the part that all do once, at the same time.
const ITERATIONS: u32 = 20;
const SHORTEST: Duration = Duration::from_micros(400);
const LONGEST: Duration = Duration::from_millis(40);
const USUAL: usize = 96;

/// Runs all, and shows them.
pub fn run(args: &ScalingArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    super::prepare()?;
    let mut rows = rows(args);
    let mut counts: Vec<usize> = args.cpus.iter().map(|&count| count as usize).collect();
    counts.sort_unstable();
    counts.dedup();
    let profile = args.sim.machine.profile()?;
    measure(args, &profile, &counts, &mut rows)?;
    if !args.json {
        scaling::print(&profile, &counts, &rows);
    }
    Ok(super::finished())
}

/// Measures all points of `rows`, and prints each as JSON if requested.
fn measure(
    args: &ScalingArgs,
    profile: &MachineProfile,
    counts: &[usize],
    rows: &mut [Row],
) -> Result<(), Failure> {
    let asked = rows.to_vec();
    let spans = spans(args, &asked, profile)?;
    let points = (0..spans.len()).flat_map(|row| counts.iter().map(move |&tasks| (row, tasks)));
    let work = rows.len() * counts.iter().sum::<usize>();
    let progress = Progress::weighted((rows.len() * counts.len()) as u64, "runs", work as u64);
    let run = |(row, tasks): (usize, usize)| {
        let Row { workload, mode, .. } = &asked[row];
        progress.point(&format!("{}, {}", workload.name, mode.count(tasks)));
        let machine = machine(profile, tasks)?;
        let point = point(args, &asked[row], &machine, tasks, spans[row])?;
        progress.worked(tasks as u64);
        Ok::<_, Failure>((machine, point))
    };
    Workers::here(AT_ONCE).run(points, run, |(row, _), point| {
        let (machine, point) = point?;
        if args.json {
            progress.aside(|| print_json(args, &rows[row], &machine, &point));
        }
        rows[row].points.push(point);
        Ok::<_, Failure>(())
    })?;
    progress.finish();
    Ok(())
}

/// The runs to make.
fn rows(args: &ScalingArgs) -> Vec<Row> {
    let usual = || WORKLOADS.iter().filter_map(|name| workloads::find(name));
    let workloads = match args.workloads.as_slice() {
        [] => usual().collect(),
        named => named.to_vec(),
    };
    let modes = Mode::BOTH.into_iter().filter(|mode| match mode {
        Mode::Processes => !args.threads,
        Mode::Threads => !args.processes,
    });
    let modes: Vec<Mode> = modes.collect();
    let mut rows = Vec::new();
    for workload in workloads {
        for &mode in &modes {
            rows.extend(args.vm.iter().map(|&vm| Row {
                workload,
                mode,
                vm,
                points: Vec::new(),
            }));
        }
    }
    rows
}

/// The time that a run of each row takes; fewer rows if the user interrupts.
fn spans(
    args: &ScalingArgs,
    rows: &[Row],
    profile: &MachineProfile,
) -> Result<Vec<Duration>, Failure> {
    let span = |row: &Row| -> Result<Duration, Failure> {
        let alone = Plan {
            count: Some(TRIED),
            ..plan(row, 1)
        };
        let taken = target(args, row, profile).complete(&alone, 0)?.real;
        let wanted = taken * ITERATIONS / TRIED as u32;
        Ok(wanted.clamp(shortest(args), LONGEST.max(shortest(args))))
    };
    let mut spans = Vec::new();
    Workers::here(AT_ONCE).run(rows, span, |_, span| {
        spans.push(span?);
        Ok::<_, Failure>(())
    })?;
    Ok(spans)
}

/// The least time of a run with up to [`USUAL`] tasks.
fn shortest(args: &ScalingArgs) -> Duration {
    let wanted = args
        .at_least
        .map(|millis| Duration::from_millis(millis.into()));
    wanted.unwrap_or(SHORTEST)
}

/// The median of the seeds' runs; the bottleneck is the first's.
fn point(
    args: &ScalingArgs,
    row: &Row,
    machine: &MachineProfile,
    tasks: usize,
    span: Duration,
) -> Result<Point, Failure> {
    let longer = tasks.div_ceil(USUAL) as u32;
    let span = (span * longer).min(LONGEST.max(shortest(args) * longer));
    let mut target = target(args, row, machine);
    let mut rates = Vec::new();
    let mut bottleneck = None;
    for _ in 0..args.sim.seeds.unwrap_or(1) {
        let seen = target.observe(&plan(row, tasks), span)?;
        rates.push(seen.done() as f64 / span.as_secs_f64());
        bottleneck.get_or_insert_with(|| seen.attribution.bottleneck());
        target.seed += 1;
    }
    rates.sort_by(f64::total_cmp);
    Ok(Point {
        tasks,
        rate: rates[rates.len() / 2],
        linear: linear(machine, tasks),
        bottleneck: bottleneck.unwrap_or_default(),
    })
}

fn target(args: &ScalingArgs, row: &Row, machine: &MachineProfile) -> Simulated {
    Simulated {
        preset: row.vm,
        profile: machine.clone(),
        seed: args.sim.machine.first_seed(),
        conditions: Conditions::default(),
    }
}

fn plan(row: &Row, tasks: usize) -> Plan {
    Plan {
        workload: row.workload.into(),
        tasks,
        mode: row.mode,
        count: None,
    }
}

/// The machine, or one with as many sockets as `tasks` tasks need.
fn machine(profile: &MachineProfile, tasks: usize) -> Result<MachineProfile, Failure> {
    if tasks <= profile.cpus() {
        return Ok(profile.clone());
    }
    let topology = &profile.topology;
    let sockets = tasks.div_ceil(topology.cores * topology.threads);
    let larger = profile.with_topology(sockets, topology.cores, topology.threads);
    larger.map_err(|error| Failure::Unavailable(error.to_string()))
}

/// The rate that `tasks` independent tasks would have, as a multiple of one task's.
fn linear(machine: &MachineProfile, tasks: usize) -> f64 {
    let mut cores: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for cpu in 0..tasks {
        let place = machine.place(cpu);
        *cores.entry((place.socket, place.core)).or_default() += 1;
    }
    let speed = |&threads: &usize| match threads {
        1 => 1.0,
        _ => threads as f64 * machine.core.smt,
    };
    cores.values().map(speed).sum()
}

fn print_json(args: &ScalingArgs, row: &Row, machine: &MachineProfile, point: &Point) {
    let subject = target(args, row, machine).subject(&plan(row, point.tasks));
    scaling::print_json(&subject, row, point);
}
