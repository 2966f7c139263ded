//! The verdict, in sentences.

use super::chart::{Chart, Series};
use super::comparison::{Comparison, Outcome};
use super::likeness::pairs;
use super::name::{described, mode_count, on_machine, system};
use crate::{Finding, Source};
use profile::Profile;
use stats::metric;
use stats::verdict::{Better, Ratio, Word};

/// The number of curves of a chart that are described in words; the table has the others.
const CURVES: usize = 3;
/// The number of curves of all charts that are.
const ALL_CURVES: usize = 6;

/// The verdict first, then its grounds; empty if too little was measured.
pub fn sentences(
    comparisons: &[Comparison],
    profiles: &[&Profile],
    sources: &[Source],
    charts: &[Chart],
) -> Vec<String> {
    let compared = compared(comparisons);
    let mut held_up: Vec<String> = profiles
        .last()
        .map(|one| bottleneck(one))
        .into_iter()
        .collect();
    if held_up.is_empty() {
        held_up = findings(sources);
    }
    let shifted = pairs(profiles).pop().map(|(first, last)| {
        let difference = profile::Difference::of(first, last);
        let [a, b] = [first, last].map(|one| mode_count(&one.subject));
        let [from, to] = [first, last].map(|one| system(&one.subject));
        match (a == b, from == to) {
            (true, true) => format!("Between the profiles: {}.", difference.sentence),
            (true, false) => format!("From {from} to {to}: {}.", difference.sentence),
            (false, _) => format!("From {a} to {b}: {}.", difference.sentence),
        }
    });
    let curves = charts.iter().flat_map(|chart| {
        let shown = chart.series.iter().take(CURVES);
        shown.filter_map(|series| curve(chart, series))
    });
    let all = compared.into_iter().chain(held_up).chain(shifted);
    all.chain(curves.take(ALL_CURVES)).collect()
}

/// The comparison that says most, and in one line how many are not judged; that first if they are
/// the most.
fn compared(comparisons: &[Comparison]) -> Vec<String> {
    let is_judged = |one: &Comparison| matches!(one.outcome, Outcome::Judged(_));
    let (all, open) = (
        comparisons.len(),
        comparisons.iter().filter(|one| !is_judged(one)).count(),
    );
    let most = comparisons
        .iter()
        .max_by_key(|one| (is_judged(one), one.origin, one.tasks));
    let about = most.map(judged);
    if open == 0 || all == 1 {
        return about.into_iter().collect();
    }
    let why = "they have too few runs";
    if open == all {
        return vec![format!("None of {all} comparisons is judged: {why}.")];
    }
    let open_ones = format!("{open} of {all} comparisons are not judged: {why}.");
    let mut lines: Vec<String> = about.into_iter().collect();
    lines.insert(usize::from(2 * open <= all), open_ones);
    lines
}

fn judged(comparison: &Comparison) -> String {
    let Comparison {
        about,
        before,
        after,
        ..
    } = comparison;
    let (before, after) = (&before.name, &after.name);
    let verdict = match &comparison.outcome {
        Outcome::Judged(verdict) => verdict,
        Outcome::Undecided(_) => {
            return format!(
                "Inconclusive: there are too few runs to say whether {after} is faster than \
                 {before} – {about}."
            );
        }
    };
    let range = interval(&verdict.ratio);
    let times = times(verdict.ratio.estimate);
    let figure = match comparison.better {
        Better::Higher => "rate",
        Better::Lower => "time",
    };
    match verdict.word {
        Word::Faster => {
            format!("{after} is faster: {times} the {figure} of {before}{range} – {about}.")
        }
        Word::Slower => {
            format!("{after} is slower: {times} the {figure} of {before}{range} – {about}.")
        }
        Word::NoDifferenceShown if comparison.is_simulated() => format!(
            "The model cannot tell {before} and {after} apart: they differ by less than {}{range} \
             – {about}.",
            comparison.told_from()
        ),
        Word::NoDifferenceShown => format!(
            "No difference shown between {before} and {after}: less than {} %{range} – {about}.",
            100.0 * comparison.minimum_effect
        ),
        Word::Inconclusive { more_runs } => format!(
            "Inconclusive: about {more_runs} more {} of each would tell whether {after} is faster \
             than {before}{range} – {about}.",
            if more_runs == 1 { "run" } else { "runs" }
        ),
    }
}

/// `3.52 times`, `149 times`.
pub fn times(ratio: f64) -> String {
    let digits = match ratio {
        r if r >= 100.0 => 0,
        r if r >= 10.0 => 1,
        _ => 2,
    };
    format!("{ratio:.digits$} times")
}

fn interval(ratio: &Ratio) -> String {
    if ratio.is_bounded() {
        format!(" (95 % interval {:.2} to {:.2})", ratio.low, ratio.high)
    } else {
        String::new()
    }
}

fn bottleneck(profile: &Profile) -> String {
    let what = profile.bottleneck.trim_end_matches('.');
    format!("{}: {what}.", described(&profile.subject))
}

/// The bottlenecks of simulated runs without a profile: the last one of each system.
fn findings(sources: &[Source]) -> Vec<String> {
    let mut last: Vec<&Finding> = Vec::new();
    for one in sources.iter().flat_map(|one| &one.findings) {
        last.retain(|other| (&other.workload, &other.vm) != (&one.workload, &one.vm));
        last.push(one);
    }
    let sentence = |one: &&Finding| {
        let tasks = one.mode.count(one.tasks as usize);
        let what = one.bottleneck.trim_end_matches('.');
        format!(
            "{} on {}, {tasks}, bottleneck: {what}.",
            one.workload, one.vm
        )
    };
    last.iter().take(CURVES).map(sentence).collect()
}

fn curve(chart: &Chart, series: &Series) -> Option<String> {
    let shape = series.shape.as_ref()?;
    let (peak, last) = (shape.peak, shape.points.last()?);
    let high = metric(peak.throughput);
    let machine = on_machine(chart.machine.as_deref());
    let curve = format!("{} on {}{machine}", chart.workload, series.name);
    let at = chart.mode.count(peak.cpus as usize);
    Some(match shape.collapse {
        Some(collapse) => format!(
            "{curve} peaks at {high} {} with {at} and falls to {} with {}, {:.0} % of the peak.",
            chart.unit,
            metric(collapse.lowest.throughput),
            collapse.lowest.cpus,
            100.0 * collapse.lowest.throughput / peak.throughput
        ),
        None if peak.cpus == last.cpus => format!(
            "{curve} grows to {high} {} with {at}, {:.0} % of perfect scaling.",
            chart.unit,
            100.0 * shape.efficiency(peak)
        ),
        None => format!(
            "{curve} peaks at {high} {} with {at} and does not collapse up to {}.",
            chart.unit, last.cpus
        ),
    })
}
