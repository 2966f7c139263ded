//! Runs of two sides in turn, and their results.

use super::rule;
use super::sides::{Kept, Sides};
use crate::cli::CompareArgs;
use crate::commands;
use crate::output::json;
use crate::output::progress::Progress;
use crate::output::sink::Sink;
use crate::output::verdict::{self, Comparison, Series};
use bench::{Failure, On, interrupt};
use stats::Exit;
use stats::verdict::{Plan, judge, self_test_of};
use std::io::Stdout;

/// Runs of each side if nothing else is said.
const RUNS: u32 = 10;
/// Runs of each side of a comparison in a self-test: enough for the rank test to speak up.
const SELF_TEST_RUNS: u32 = 5;

/// Compares two operands. If the user cuts it short, judges the finished runs.
pub fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    if args.operands.len() != 2 {
        return Err(Failure::Unavailable(format!(
            "expected two systems, presets or commands, found {}",
            args.operands.len()
        )));
    }
    if args.prepare.len() > 2 || args.cleanup.len() > 2 {
        let why = "expected --prepare and --cleanup at most twice: for A, then for B";
        return Err(Failure::Unavailable(why.into()));
    }
    commands::prepare()?;
    let mut sides = Sides::new(args, &args.operands)?;
    warn_if_crowded(args, &sides);
    let keep = &args.measuring.keep;
    let sink = Sink::open(
        None::<&mut Stdout>,
        keep.store.as_deref(),
        keep.label.as_deref(),
    )?;
    let mut machine = (args.json || sink.is_some()).then(json::machine);
    let pairs = args.runs.unwrap_or(RUNS);
    sides.warn_if_noisy(2 * pairs, machine.as_ref());
    let mut kept = sink
        .zip(machine.clone())
        .map(|(sink, machine)| Kept { sink, machine });
    let rates = alternate(&mut sides, 2 * u64::from(pairs), kept.as_mut())?;
    let stored = kept.map_or(Ok(()), |kept| kept.sink.finish());
    // A run of A that lost its partner does not count.
    let every_other = |from: usize| rates.chunks_exact(2).map(move |pair| pair[from]);
    let (a, b): (Vec<f64>, Vec<f64>) = (every_other(0).collect(), every_other(1).collect());
    if interrupt::pending().is_some() && a.len() < 2 {
        return Ok(commands::finished());
    }
    let [name_a, name_b] = [0, 1].map(|which| sides.names[which].as_str());
    let rule = rule(args, sides.simulated);
    let judgement = judge(&a, &b, &rule).map_err(|error| {
        Failure::Unavailable(format!("{error}; longer runs (--duration) may help"))
    })?;
    let comparison = Comparison {
        about: &sides.about,
        unit: sides.unit,
        better: rule.better,
        a: Series::new(name_a, &a),
        b: Series::new(name_b, &b),
        minimum_effect: rule.minimum_effect,
        verdict: judgement,
        interleaved: true,
        simulated: sides.simulated,
    };
    if let Some(machine) = machine.as_mut().filter(|_| args.json) {
        machine.observe_after();
        verdict::print_json(&comparison, Some(machine));
    } else {
        println!("{}, A and B in turn", comparison.about);
        let series = [Series::new(name_a, &a), Series::new(name_b, &b)];
        verdict::print_table(comparison.about, &series, &args.table.options());
        verdict::print(&comparison);
    }
    stored?;
    match commands::finished() {
        0 => Ok(judgement.exit().code()),
        signal => Ok(signal),
    }
}

/// Compares one operand with itself, often, and counts the false alarms.
pub fn self_test(args: &CompareArgs) -> Result<u8, Failure> {
    let name = match args.operands.as_slice() {
        [one] => one.clone(),
        [] if !args.command => "os".to_owned(),
        _ => {
            let why = "expected one operand, which --self-test compares with itself";
            return Err(Failure::Unavailable(why.into()));
        }
    };
    commands::prepare()?;
    let mut sides = Sides::new(args, &[name])?;
    warn_if_crowded(args, &sides);
    let mut machine = args.json.then(json::machine);
    let plan = Plan {
        comparisons: args.comparisons as usize,
        runs: args.runs.unwrap_or(SELF_TEST_RUNS) as usize,
    };
    let total = 2 * (plan.comparisons * plan.runs) as u64;
    sides.warn_if_noisy(total.try_into().unwrap_or(u32::MAX), machine.as_ref());
    let found = self_test_of(plan, alternate(&mut sides, total, None)?);
    if found.rank.of == 0 {
        return Ok(commands::finished()); // cut short before the first comparison
    }
    if let Some(machine) = &mut machine {
        machine.observe_after();
        verdict::print_self_test_json(&sides.names[0], &sides.about, &found, machine);
    } else {
        println!("{}: {}", sides.names[0], sides.about);
        println!("{found}");
    }
    match (commands::finished(), found.sound()) {
        (0, true) => Ok(Exit::Success.code()),
        (0, false) => Ok(Exit::Inconclusive.code()),
        (signal, _) => Ok(signal),
    }
}

fn warn_if_crowded(args: &CompareArgs, sides: &Sides) {
    if !args.command && !sides.simulated {
        commands::warn_if_crowded(On::Hosted, args.measuring.tasks as usize);
    }
}

/// The rates of `total` runs, the sides taking turns; fewer if the user cuts it short.
fn alternate(
    sides: &mut Sides,
    total: u64,
    mut kept: Option<&mut Kept>,
) -> Result<Vec<f64>, Failure> {
    let progress = Progress::new(total, "runs");
    let mut rates = Vec::new();
    let count = sides.runners.len();
    for which in (0..count).cycle().take(total as usize) {
        progress.point(&sides.names[which]);
        let rate = sides.runners[which].run(kept.as_deref_mut());
        match rate {
            Ok(Some(rate)) => rates.push(rate),
            Ok(None) => break,
            Err(failure) => {
                progress.finish();
                return Err(failure);
            }
        }
        progress.step();
    }
    progress.finish();
    Ok(rates)
}
