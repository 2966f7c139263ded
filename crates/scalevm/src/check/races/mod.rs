//! `check races`: scenarios under many schedules, each named by a seed.
//!
//! Random delays at random accesses, on machines of random shapes, take runs to schedules
//! that a quiet machine never shows. `docs/simulator/checking.md` says what is explored.

mod panics;
pub mod play;
mod report;
pub mod scenarios;
mod search;
mod trial;

use super::planted;
use crate::cli::RacesArgs;
use crate::harness::{Failure, interrupt};
use crate::output::progress::Progress;
use play::Scenario;
use report::{Report, Row};

/// Seeds of each scenario, and of each planted bug, if nothing is said.
const SEEDS: u64 = 200;
const SEEDS_PLANTED: u64 = 1000;

/// The names of scenarios and of their families.
pub fn names() -> Vec<String> {
    let names: Vec<_> = scenarios::all().into_iter().map(|one| one.name).collect();
    let mut families: Vec<_> = names.iter().map(|name| family(name).to_owned()).collect();
    families.dedup();
    families.into_iter().chain(names).collect()
}

/// The names of planted bugs.
pub fn planted_names() -> Vec<&'static str> {
    planted::all().into_iter().map(|bug| bug.name).collect()
}

/// Searches and shows. The exit code: 0 if no scenario has failed, and every planted bug
/// that was asked for was found; else 1.
pub fn run(args: &RacesArgs) -> Result<u8, Failure> {
    interrupt::install().map_err(Failure::start("signal handler"))?;
    sync::watch::order::switch(true);
    let subjects = subjects(args);
    let count = args.seeds.unwrap_or(match args.planted {
        None => SEEDS,
        Some(_) => SEEDS_PLANTED,
    });
    let seeds = args
        .seed
        .map_or(0..count, |seed| seed..seed.saturating_add(1));
    let total = (seeds.end - seeds.start) * subjects.len() as u64;
    let progress = Progress::new(total, "runs");
    let mut report = Report::new(args.json, args.planted.is_some());
    for (scenario, about) in subjects {
        progress.point(&scenario.name);
        let found = search::search(&scenario, seeds.clone(), &|| progress.step());
        let row = Row {
            name: &scenario.name,
            about,
            found,
        };
        progress.aside(|| report.row(&row));
        if interrupt::pending().is_some() {
            break;
        }
    }
    progress.finish();
    let code = report.end();
    Ok(interrupt::pending().map_or(code, |signal| 128 + signal))
}

/// What is asked for, and what is wrong with it on purpose.
fn subjects(args: &RacesArgs) -> Vec<(Scenario, &'static str)> {
    if let Some(bug) = &args.planted {
        let asked = |one: &planted::Planted| bug == "all" || bug == one.name;
        let bugs = planted::all().into_iter().filter(asked);
        return bugs.map(|bug| (bug.scenario, bug.about)).collect();
    }
    let asked = |name: &str| {
        let mut only = args.only.iter();
        args.only.is_empty() || only.any(|asked| asked == name || asked == family(name))
    };
    let scenarios = scenarios::all().into_iter();
    let chosen = scenarios.filter(|scenario| asked(&scenario.name));
    chosen.map(|scenario| (scenario, "")).collect()
}

fn family(name: &str) -> &str {
    name.split_once('.').map_or(name, |(family, _)| family)
}
