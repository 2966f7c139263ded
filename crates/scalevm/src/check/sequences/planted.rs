//! Planted bugs: does the comparison find anything?

use super::{broken, report};
use crate::cli::SequencesArgs;
use crate::harness::{Failure, interrupt};
use oracle::System;
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

/// Searches those that are asked for. The exit code: 0 if all are found, else 1.
pub fn run(asked: &str, args: &SequencesArgs) -> Result<u8, Failure> {
    let asked = |bug: &Bug| asked == "all" || bug.name() == asked;
    let (mut searched, mut found) = (0, 0);
    for bug in Bug::ALL.into_iter().filter(asked) {
        let mut planted = Planted::new(bug);
        let first = args.seed.unwrap_or(0);
        let outcome = search(&mut planted, first)?;
        searched += 1;
        found += usize::from(outcome.is_some());
        report::planted(args.json, bug.name(), outcome.as_ref());
        if interrupt::pending().is_some() {
            break;
        }
    }
    report::planted_summary(args.json, searched, found);
    let code = u8::from(found < searched);
    Ok(interrupt::pending().map_or(code, |signal| 128 + signal))
}

/// The first difference, made short, and its seed.
fn search(planted: &mut Planted, first: u64) -> Result<Option<(u64, Divergence)>, Failure> {
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
