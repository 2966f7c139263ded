//! The locks on the simulated machine.

use crate::cli::LocksArgs;
use crate::commands::{finished, prepare};
use crate::output::format;
use crate::output::plot::{self, Curve};
use crate::output::progress::Progress;
use crate::output::simulated_locks::{Figures, print_json, table};
use bench::simulated::{AT_ONCE, Compared};
use bench::{Failure, Workers};
use lockbench::Row;
use lockbench::simulated::{self, Load};
use sim::profile::MachineProfile;
use stats::count;
use std::ops::Range;

/// Default number of runs of each point.
const SEEDS: u32 = 5;

/// Simulates and shows.
pub fn run(args: &LocksArgs, rows: &[&'static Row]) -> Result<u8, Failure> {
    if args.duration.is_some() {
        let why =
            "--duration applies only to --on hosted: simulated runs last as long as they need";
        return Err(Failure::Unavailable(why.into()));
    }
    let rows = simulated_rows(rows, &args.only)?;
    let profile = args.sim.machine.profile()?;
    let mut counts = args.counts();
    if counts.is_empty() {
        counts = simulated::counts(&profile);
    }
    let first = args.sim.machine.first_seed();
    let seeds = first..first.saturating_add(args.sim.seeds.unwrap_or(SEEDS).into());
    prepare()?;
    let load = args.load.load();
    let loads = rows.iter().map(|row| match args.load.alone {
        Some(rate) => simulated::fitted(&profile, row, &load, 1, rate, seeds.start),
        None => Ok(load),
    });
    let loads: Vec<Load> = loads.collect::<Result<_, _>>()?;
    let figures = measure(&profile, &rows, &loads, &counts, &seeds)?;
    if args.json {
        for one in &figures {
            print_json(one, &profile, &seeds);
        }
    } else {
        show(&figures, &counts, &profile, &seeds);
    }
    Ok(finished())
}

/// The rows that can be simulated; a row requested by name must be one.
fn simulated_rows(rows: &[&'static Row], names: &[String]) -> Result<Vec<&'static Row>, Failure> {
    let foreign = |row: &&&Row| row.simulated.is_none() && names.iter().any(|n| n == row.name);
    let rows_left: Vec<_> = rows
        .iter()
        .filter(|row| row.simulated.is_some())
        .copied()
        .collect();
    match rows.iter().find(foreign) {
        Some(row) => Err(simulated::unavailable(row)),
        None if rows_left.is_empty() => Err(Failure::Unavailable(
            "expected a mutex, rwlock or counter: only these can be simulated".into(),
        )),
        None => Ok(rows_left),
    }
}

/// Runs all points. A signal ends it early, with the points finished by then.
fn measure(
    profile: &MachineProfile,
    rows: &[&'static Row],
    loads: &[Load],
    counts: &[usize],
    seeds: &Range<u64>,
) -> Result<Vec<Figures>, Failure> {
    let figures = rows.iter().zip(loads).map(|(row, &load)| {
        Ok(Figures {
            row,
            load,
            alone: simulated::uncontended(profile, row)?,
            points: Vec::new(),
        })
    });
    let mut figures = figures.collect::<Result<Vec<_>, Failure>>()?;
    let points = (0..rows.len()).flat_map(|row| counts.iter().map(move |&cpus| (row, cpus)));
    let progress = Progress::new((counts.len() * rows.len()) as u64, "points");
    let run = |(row, cpus): (usize, usize)| {
        progress.point(&format!("{}, {}", rows[row].name, count(cpus, "CPU")));
        let point = simulated::curve(profile, rows[row], &loads[row], &[cpus], seeds);
        progress.step();
        point
    };
    let ended = Workers::here(AT_ONCE).run(points, run, |(row, _), point| {
        figures[row].points.extend(point?);
        Ok(())
    });
    progress.finish();
    ended.map(|()| figures)
}

fn show(figures: &[Figures], counts: &[usize], profile: &MachineProfile, seeds: &Range<u64>) {
    println!(
        "simulated {}, {}: million operations a second of n CPUs, median of {} \
         and range; ns: one CPU, nothing inside",
        profile.name,
        count(profile.cpus(), "CPU"),
        count(seeds.end - seeds.start, "seed")
    );
    for load in different(figures) {
        println!("{}", sections(load, figures));
    }
    format::print(&table(figures, counts));
    let curves: Vec<Curve> = figures.iter().map(Figures::curve).collect();
    print!("{}", plot::draw(&curves, "CPUs"));
    let names = figures.iter().map(|one| one.row.name);
    println!(
        "compared with measured curves on such a machine: {}; fairness is not predicted \
         (docs/simulator/locks.md)",
        compared(names, profile)
    );
}

/// The loads that are not the usual one, each once.
fn different(figures: &[Figures]) -> Vec<&Load> {
    let mut loads: Vec<&Load> = Vec::new();
    for one in figures {
        if one.load != Load::default() && !loads.contains(&&one.load) {
            loads.push(&one.load);
        }
    }
    loads
}

/// What CPUs do under a load, with the locks if not all have it.
fn sections(load: &Load, figures: &[Figures]) -> String {
    let have = figures.iter().filter(|one| one.load == *load);
    let names: Vec<&str> = have.map(|one| one.row.name).collect();
    let whose = match names.len() == figures.len() {
        true => String::new(),
        false => format!("{}: ", names.join(", ")),
    };
    let times = match load.times {
        1 => String::new(),
        times => format!("; {times} an operation"),
    };
    format!(
        "{whose}sections write {} and compute {} ns; from one to the next {:.0} ns{times}; CPUs: \
         {}{}",
        count(load.lines, "line"),
        load.section,
        load.private,
        load.place.name(),
        if load.disturbed {
            ", after a warm-up with random delays"
        } else {
            ""
        }
    )
}

/// The locks that have been compared with measurements, and how far the worst was off.
fn compared<'a>(names: impl Iterator<Item = &'a str>, profile: &MachineProfile) -> String {
    let worst = |name| {
        let all = Compared::all().filter(|one| one.system == name && one.costs == profile.costs);
        let worst = all.map(|one| one.error).max_by(f64::total_cmp)?;
        Some(format!(
            "{name} (by a factor of {:.2} at most)",
            worst.exp()
        ))
    };
    let found: Vec<String> = names.filter_map(worst).collect();
    if found.is_empty() {
        return "none of them".into();
    }
    found.join(", ")
}
