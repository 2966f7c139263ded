//! `scalevm compare`: did the change help?

mod files;
mod interleaved;
mod sides;

use crate::cli::CompareArgs;
use crate::output::format;
use bench::Failure;
use stats::verdict::{MINIMUM_EFFECT, Rule, SIMULATED_EFFECT};

/// Compares the operands: files, or with `--workload` systems, or with
/// `--command` commands.
pub fn run(args: &CompareArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let kept = args.measuring.keep.store.is_some() || args.measuring.keep.label.is_some();
    if kept && (args.self_test || args.workload.is_none()) {
        let why = "--store and --label require --workload: other comparisons make no runs to keep";
        return Err(Failure::Unavailable(why.into()));
    }
    if args.self_test {
        return interleaved::self_test(args);
    }
    if args.command || args.workload.is_some() {
        return interleaved::compare(args);
    }
    let nothing_to_run = |name: &String| sides::is_system(name) && !is_file(name);
    if let Some(name) = args.operands.iter().find(|name| nothing_to_run(name)) {
        return Err(Failure::Unavailable(format!(
            "no workload given for `{name}`: use --workload NAME (see `scalevm list`)"
        )));
    }
    files::compare(args)
}

fn is_file(name: &str) -> bool {
    std::path::Path::new(name).exists()
}

/// The smallest difference that matters, as a share: the requested one, or the least that results
/// can show.
pub fn least_effect(asked: Option<f64>, simulated: bool) -> f64 {
    let default = if simulated {
        SIMULATED_EFFECT
    } else {
        MINIMUM_EFFECT
    };
    asked.unwrap_or(default)
}

fn rule(args: &CompareArgs, simulated: bool) -> Rule {
    Rule {
        minimum_effect: least_effect(args.minimum_effect, simulated),
        ..Rule::default()
    }
}
