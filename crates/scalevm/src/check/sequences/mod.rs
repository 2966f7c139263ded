//! `check model`, `check oracle` and `check fuzz`: do operations mean what they should?
//!
//! Sequences of the `oracle` crate, played on the VM and on others side by side. What differs
//! first is made short and printed as a sequence that can be replayed.

mod planted;
mod report;
mod search;

pub use planted::{names as bug_names, neglects as neglect_names};

use super::ours::Ours;
use crate::cli::{FuzzArgs, ModelArgs, SequencesArgs};
use crate::harness::{Failure, interrupt};
use oracle::check::{Divergence, play, shrink};
use oracle::{Broken, Linux, Step, System, text};
use report::Report;
use stats::InputError;
use std::fs;
use std::path::Path;

/// Compares the VM, or the planted bugs, with the model. The exit code: 0 if nothing
/// differs, or all bugs are found; else 1.
pub fn model(args: &ModelArgs) -> Result<u8, Failure> {
    interrupt::install().map_err(Failure::start("signal handler"))?;
    if let Some(bug) = &args.planted {
        return planted::run(bug, planted::bugs(), &args.sequences);
    }
    let mut ours = Ours::new(args.sequences.tasks.into());
    run(&args.sequences, None, &mut [&mut ours])
}

/// Compares the VM with the model while memory is short and things fail, or searches the bugs of
/// careless systems. The exit code: 0 if nothing differs, or all bugs are found; else 1.
pub fn fuzz(args: &FuzzArgs) -> Result<u8, Failure> {
    interrupt::install().map_err(Failure::start("signal handler"))?;
    if let Some(neglect) = &args.planted {
        return planted::run(neglect, planted::careless(), &args.sequences);
    }
    let mut ours = Ours::scarce(args.sequences.tasks.into());
    run(&args.sequences, args.seconds, &mut [&mut ours])
}

/// Compares the VM with the kernel of this computer. The exit code: 0 if nothing differs,
/// else 1.
pub fn oracle(args: &SequencesArgs) -> Result<u8, Failure> {
    interrupt::install().map_err(Failure::start("signal handler"))?;
    // First, while this process is small.
    let mut linux = Linux::new().map_err(broken)?;
    let mut ours = Ours::new(args.tasks.into());
    run(args, None, &mut [&mut linux, &mut ours])
}

/// Compares for so many operations, or `seconds`.
fn run(
    args: &SequencesArgs,
    seconds: Option<u64>,
    systems: &mut [&mut dyn System],
) -> Result<u8, Failure> {
    // The order of locks is checked, and a violation ends the step as any panic does.
    sync::watch::order::switch(true);
    quieten();
    let mut report = Report::new(args.json, systems);
    let found = match &args.replay {
        Some(file) => {
            let steps = read(file)?;
            match play(&steps, systems).map_err(broken)? {
                Ok(played) => {
                    report.played(played);
                    None
                }
                Err(found) => Some((None, found)),
            }
        }
        None => {
            let found = search::search(args, seconds, systems, &mut report).map_err(broken)?;
            match found {
                Some((seed, found)) => Some((Some(seed), shrink(found, systems).map_err(broken)?)),
                None => None,
            }
        }
    };
    let differs = found.is_some();
    if let Some((seed, found)) = &found {
        report.divergence(*seed, found);
    }
    report.end(differs);
    Ok(interrupt::pending().map_or(u8::from(differs), |signal| 128 + signal))
}

/// Panics on the VM's CPUs are outcomes, which the report shows.
fn quieten() {
    std::panic::set_hook(Box::new(|_| {}));
}

fn read(file: &Path) -> Result<Vec<Step>, Failure> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|source| InputError::Unreadable {
        file: name.clone(),
        source,
    })?;
    text::parse(&text).map_err(|error| Failure::Unavailable(format!("{name}: {error}")))
}

fn broken(error: Broken) -> Failure {
    Failure::Sequences(error)
}

/// What differs, with the seed that shows it if there was one.
type Found = (u64, Divergence);
