//! Predictions as tables.

use super::{Group, Predicted, half, shown};
use crate::output::short;
use crate::output::table::{align_right, with_header};
use comfy_table::Table;
use studies::predict::Setup;
use studies::predict::score::Sign;
use studies::published::Unit;

/// The system and machine that represent each curve's own.
pub fn listed(setups: &[Setup], own: bool) -> Table {
    let mut header = vec!["curve", "machine", "represented by", "after"];
    if !own {
        header.insert(1, "half");
    }
    let mut table = with_header(header);
    for setup in setups {
        let mut row = vec![
            setup.curve.id.clone(),
            setup.machine.name.clone(),
            setup.before.to_string(),
            match setup.pair() {
                Ok(None) => String::new(),
                Ok(Some((after, _))) => after.to_string(),
                Err(why) => format!("not predicted: {why}"),
            },
        ];
        if !own {
            row.insert(1, shown(half(setup.curve)).to_owned());
        }
        table.add_row(row);
    }
    table
}

/// Of each curve the predicted rates.
pub fn unscored(predicted: &[Predicted]) -> Table {
    let mut table = with_header([
        "curve",
        "machine",
        "represented by",
        "rates",
        "knee",
        "after/before",
        "bottleneck",
    ]);
    for one in predicted {
        let unit = one.setup.curve.unit;
        let points = one.prediction.points.iter();
        let rates = points.map(|point| format!("{}: {}", point.0, rate(unit, point.1)));
        let knee = one.score.as_ref().and_then(|score| score.knees);
        table.add_row([
            one.setup.curve.id.clone(),
            one.setup.machine.name.clone(),
            one.setup.before.to_string(),
            Vec::from_iter(rates).join("; "),
            dash(knee.map(|[ours, _]| ours.to_string())),
            dash(one.prediction.change.map(|point| format!("{:.2}", point.1))),
            one.prediction.mechanism.name().to_owned(),
        ]);
    }
    table
}

/// For each curve the predicted and the measured rate of the most tasks, and what follows.
pub fn scored(predicted: &[Predicted]) -> Table {
    let mut table = with_header([
        "curve",
        "represented by",
        "tasks",
        "predicted",
        "measured",
        "error",
        "USL",
        "linear",
        "knees",
        "after/before",
        "bottleneck",
        "band",
        "",
    ]);
    for one in predicted {
        let (curve, score) = (one.setup.curve, one.score.as_ref());
        let last = one.last().filter(|_| score.is_some());
        let error = |value: Option<f64>| dash(value.map(|value| format!("{value:.2}")));
        let change = one.change().map(|[ours, measured]| {
            let wrong = Sign::of(ours) != Sign::of(measured);
            format!(
                "{ours:.2}, {measured:.2}{}",
                if wrong { " wrong" } else { "" }
            )
        });
        table.add_row([
            curve.id.clone(),
            one.setup.before.to_string(),
            dash(last.map(|(tasks, ..)| tasks.to_string())),
            dash(last.map(|(_, predicted, _)| rate(curve.unit, predicted))),
            dash(last.map(|(.., measured)| rate(curve.unit, measured))),
            error(score.map(|score| score.ours)),
            error(score.and_then(|score| score.usl)),
            error(score.map(|score| score.linear)),
            dash(
                score
                    .and_then(|score| score.knees)
                    .map(|[ours, measured]| format!("{ours}, {measured}")),
            ),
            dash(change),
            one.prediction.mechanism.name().to_owned(),
            one.band().map_or("none".into(), |band| {
                format!("{:.2}–{:.2}", band.low, band.high)
            }),
            holding(one).to_owned(),
        ]);
    }
    align_right(&mut table, 2..8);
    table
}

/// A row for each group.
pub fn summary(groups: &[Group]) -> Table {
    let mut table = with_header([
        "predictions",
        "curves",
        "sources",
        "error",
        "linear",
        "USL",
        "error on USL's curves",
        "knees within ×1.5",
        "signs",
    ]);
    let error = |value: Option<f64>| dash(value.map(|value| format!("{value:.2}")));
    for (name, summary) in groups {
        let of = |[right, all]: [usize; 2]| format!("{right} of {all}");
        table.add_row([
            shown(name).to_owned(),
            summary.curves.to_string(),
            summary.sources.to_string(),
            error(summary.ours),
            error(summary.linear),
            error(summary.usl.map(|[usl, _]| usl)),
            error(summary.usl.map(|[_, ours]| ours)),
            of(summary.knees),
            of(summary.signs),
        ]);
    }
    align_right(&mut table, 1..7);
    table
}

/// `2.106 M`, or `4.21 ×` one task's.
fn rate(unit: Unit, rate: f64) -> String {
    match unit {
        Unit::TimesOne => format!("{rate:.2} ×"),
        Unit::Operations | Unit::Faults => short(rate),
    }
}

fn holding(one: &Predicted) -> &'static str {
    match one.holds() {
        None => "",
        Some(true) => "holds",
        Some(false) => "misses",
    }
}

fn dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".into())
}
