//! Planted bugs: does the comparison find anything?

use super::{broken, report};
use crate::cli::SequencesArgs;
use crate::harness::{Failure, interrupt};
use oracle::System;
use oracle::careless::{Careless, Neglect};
use oracle::check::{Divergence, play, sequence_for, shrink};
use oracle::planted::{Bug, Planted};

/// Sequences after which a bug counts as not found.
const SEEDS: u64 = 1000;
/// Steps of each.
const STEPS: usize = 100;

/// What the bugs are called.
pub fn names() -> impl Iterator<Item = &'static str> {
    Bug::ALL.into_iter().map(Bug::name)
}

/// What the bugs are called of systems that are careless when memory is short.
pub fn neglects() -> impl Iterator<Item = &'static str> {
    Neglect::ALL.into_iter().map(Neglect::name)
}

/// Systems with a bug each.
pub fn bugs() -> impl Iterator<Item = Box<dyn System>> {
    let system = |bug| Box::new(Planted::new(bug)) as _;
    Bug::ALL.into_iter().map(system)
}

/// Careless systems.
pub fn careless() -> impl Iterator<Item = Box<dyn System>> {
    let system = |neglect| Box::new(Careless::new(neglect)) as _;
    Neglect::ALL.into_iter().map(system)
}

/// Searches the bugs of those `systems` that are asked for. The exit code: 0 if all are found,
/// else 1.
pub fn run(
    asked: &str,
    systems: impl Iterator<Item = Box<dyn System>>,
    args: &SequencesArgs,
) -> Result<u8, Failure> {
    let (mut searched, mut found) = (0, 0);
    for mut planted in systems.filter(|system| asked == "all" || system.name() == asked) {
        let first = args.seed.unwrap_or(0);
        let outcome = search(&mut *planted, first)?;
        searched += 1;
        found += usize::from(outcome.is_some());
        report::planted(args.json, planted.name(), outcome.as_ref());
        if interrupt::pending().is_some() {
            break;
        }
    }
    report::planted_summary(args.json, searched, found);
    let code = u8::from(found < searched);
    Ok(interrupt::pending().map_or(code, |signal| 128 + signal))
}

/// The first difference, made short, and its seed.
fn search(planted: &mut dyn System, first: u64) -> Result<Option<(u64, Divergence)>, Failure> {
    let mut systems: [&mut dyn System; 1] = [planted];
    for seed in first..first + SEEDS {
        let steps = sequence_for(seed, STEPS, &systems);
        if let Err(found) = play(&steps, &mut systems).map_err(broken)? {
            let short = shrink(found, &mut systems).map_err(broken)?;
            return Ok(Some((seed, short)));
        }
    }
    Ok(None)
}
