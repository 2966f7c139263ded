//! `scalevm history`: how stored results changed over time.

use super::compare::least_effect;
use crate::cli::{Export, HistoryArgs};
use crate::output::{format, history as output};
use bench::Failure;
use stats::change;
use stats::count;
use stats::export::{Curve, csv};
use stats::history::{History, Series, gather};
use stats::store;
use stats::verdict::Rule;

/// Reads, and shows or exports.
pub fn run(args: &HistoryArgs) -> Result<u8, Failure> {
    let store = store::read(&args.paths)?;
    for warning in &store.warnings {
        eprintln!("scalevm: warning: {warning}");
    }
    let mut history = gather(&store);
    if history.cut_short > 0 {
        eprintln!(
            "scalevm: left out {} that did not end",
            count(history.cut_short, "run")
        );
    }
    select(&mut history, args)?;
    match args.export {
        Some(format) => export(args, format, history.series)?,
        None => {
            format::choose(args.format.format);
            show(args, &history.series);
        }
    }
    Ok(0)
}

/// Keeps the requested series; it is an error if none is left.
fn select(history: &mut History, args: &HistoryArgs) -> Result<(), Failure> {
    let series = &mut history.series;
    if series.is_empty() {
        return Err(Failure::Unavailable("no complete run found".into()));
    }
    if let Some(workload) = &args.workload {
        keep(series, "workload", workload, |one| Some(&one.key.workload))?;
    }
    if let Some(on) = args.on {
        keep(series, "system", on.name(), |one| Some(&one.key.on))?;
    }
    if let Some(vm) = &args.vm {
        keep(series, "build", vm, |one| one.key.vm.as_deref())?;
    }
    Ok(())
}

/// Keeps the series whose `field` is `wanted`, or lists the available ones.
fn keep(
    series: &mut Vec<Series>,
    what: &str,
    wanted: &str,
    field: impl Fn(&Series) -> Option<&str>,
) -> Result<(), Failure> {
    let mut there: Vec<String> = series
        .iter()
        .filter_map(|one| field(one).map(str::to_owned))
        .collect();
    there.sort();
    there.dedup();
    series.retain(|one| field(one) == Some(wanted));
    match series.is_empty() {
        false => Ok(()),
        true if there.is_empty() => Err(Failure::Unavailable(format!(
            "no run has a {what}, so none matches `{wanted}`"
        ))),
        true => Err(Failure::Unavailable(format!(
            "no run has the {what} `{wanted}`; found {}",
            there.join(", ")
        ))),
    }
}

fn show(args: &HistoryArgs, series: &[Series]) {
    for (index, one) in series.iter().enumerate() {
        let minimum_effect = least_effect(args.minimum_effect, one.key.simulated());
        let rule = Rule {
            minimum_effect,
            ..Rule::default()
        };
        let options = change::Options {
            minimum_effect,
            ..change::Options::default()
        };
        let lines = one.lines(&rule);
        let shifts = one.shifts(&options);
        let hidden = args
            .last
            .map_or(0, |last| lines.len().saturating_sub(last as usize));
        let lines = &lines[hidden..];
        if args.json {
            output::print_json(&one.key, lines, &shifts)
        } else {
            if index > 0 {
                println!();
            }
            output::print(one, lines, &shifts);
        }
    }
}

fn export(args: &HistoryArgs, format: Export, mut series: Vec<Series>) -> Result<(), Failure> {
    if let Some(label) = &args.label {
        let mut labels: Vec<&str> = series
            .iter()
            .flat_map(|one| one.runs.iter().map(|run| run.label.as_str()))
            .collect();
        labels.sort_unstable();
        labels.dedup();
        if !labels.contains(&label.as_str()) {
            return Err(Failure::Unavailable(format!(
                "no run has the label `{label}`; found {}",
                labels.join(", ")
            )));
        }
        for one in &mut series {
            one.runs.retain(|run| run.label == *label);
        }
    }
    let curve = Curve::of(&series, args.label.as_deref()).map_err(|error| {
        Failure::Unavailable(format!(
            "{error} (by --workload, --on, --vm, or other files)"
        ))
    })?;
    eprintln!("scalevm: label {}", curve.label());
    match format {
        Export::Csv => print!("{}", csv(&curve)),
    }
    Ok(())
}
