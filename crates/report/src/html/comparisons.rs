//! Before and after: the verdicts, and below them ministat's tables.

use crate::page::{Basis, Comparison, Outcome};
use maud::{Markup, html};
use stats::verdict::{Verdict, Word};
use stats::{general, ratio};

/// The tables after these start closed.
const OPEN: usize = 2;

pub fn section(comparisons: &[Comparison]) -> Markup {
    html! {
        section #comparison aria-labelledby="comparison-title" {
            h2 #comparison-title { "Before and after" }
            (verdicts(comparisons))
            @if comparisons.iter().any(|one| !one.interleaved && one.basis != Basis::Seeds) {
                p.note { "Where the runs of one side were taken before those of the other, a \
                          drifting machine looks like a difference. " code { "scalevm compare" }
                    " alternates between the sides." }
            }
            @for (index, one) in comparisons.iter().enumerate() { (details(one, index)) }
        }
    }
}

fn verdicts(comparisons: &[Comparison]) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-label="Verdicts" {
            table.sortable {
                caption { "After relative to before: the ratio of rates (of times where less is \
                           better), its 95 % interval, and the rank test" }
                thead { tr {
                    th scope="col" { "What" } th scope="col" { "Before" } th scope="col" { "After" }
                    @for name in ["Ratio", "Interval", "p"] { th.number scope="col" { (name) } }
                    th scope="col" { "Runs" } th scope="col" { "Verdict" }
                } }
                tbody { @for one in comparisons { (row(one)) } }
            }
        }
    }
}

fn row(one: &Comparison) -> Markup {
    html! {
        tr {
            th scope="row" { (one.about) }
            td { (one.before.name) }
            td { (one.after.name) }
            @match &one.outcome {
                Outcome::Judged(verdict) => {
                    td.number data-v=(verdict.ratio.estimate) {
                        (format!("{:.3}", verdict.ratio.estimate))
                    }
                    td.number data-v=(verdict.ratio.low) { (interval(verdict)) }
                    td.number data-v=(verdict.rank.p) { (general(verdict.rank.p, 2)) }
                }
                Outcome::Undecided(_) => { td.number { "–" } td.number { "–" } td.number { "–" } }
            }
            td { (taken(one)) }
            td { (word(one)) }
        }
    }
}

fn interval(verdict: &Verdict) -> String {
    let ratio = verdict.ratio;
    if ratio.is_bounded() {
        format!("{:.3}–{:.3}", ratio.low, ratio.high)
    } else {
        "too few runs".into()
    }
}

fn taken(one: &Comparison) -> String {
    let (a, b) = (one.before.runs.len(), one.after.runs.len());
    match (one.basis, one.interleaved) {
        (Basis::Samples, _) => format!("{a} + {b} samples"),
        (Basis::Seeds, _) => format!("{a} + {b} seeds"),
        (Basis::Runs, true) => format!("{a} + {b}, interleaved"),
        (Basis::Runs, false) => format!("{a} + {b}, not interleaved"),
    }
}

fn word(one: &Comparison) -> Markup {
    let (class, text) = match &one.outcome {
        Outcome::Undecided(_) => ("open", "inconclusive".to_owned()),
        Outcome::Judged(verdict) => match verdict.word {
            Word::Faster => ("good", verdict.word.to_string()),
            Word::Slower => ("bad", verdict.word.to_string()),
            Word::NoDifferenceShown if one.is_simulated() => (
                "same",
                format!("the model cannot tell less than {}", one.told_from()),
            ),
            Word::NoDifferenceShown => ("same", verdict.word.to_string()),
            Word::Inconclusive { .. } => ("open", verdict.word.to_string()),
        },
    };
    html! { span class={ "word " (class) } { (text) } }
}

fn details(one: &Comparison, index: usize) -> Markup {
    let (before, after) = (&one.before.name, &one.after.name);
    html! {
        details open[index < OPEN] {
            summary { (one.about) ": " (before) " and " (after) }
            @if let Some(table) = &one.table {
                pre.ministat tabindex="0" role="region"
                    aria-label={ "ministat's table: " (one.about) } { (table) }
            } @else {
                p { "Fewer than three numbers on a side: no table." }
            }
            @match &one.outcome {
                Outcome::Judged(verdict) => { p { (judged(one, verdict)) } }
                Outcome::Undecided(why) => { p { "Inconclusive: " (why) "." } }
            }
        }
    }
}

fn judged(one: &Comparison, verdict: &Verdict) -> String {
    let Verdict {
        rank, means, welch, ..
    } = verdict;
    let exact = if rank.exact { "exact" } else { "approximate" };
    let least = if one.is_simulated() {
        format!("The model ranks rates from {} apart on", one.told_from())
    } else {
        let percent = general(100.0 * one.minimum_effect, 4);
        format!("Differences below {percent} % do not matter here")
    };
    format!(
        "Mann–Whitney U = {}, p = {} ({exact}). Ratio of means {}, Welch's t p = {}. {least}. \
         Unit: {}.",
        general(rank.u, 6),
        general(rank.p, 2),
        ratio(means.estimate),
        general(welch.p, 2),
        one.unit,
    )
}
