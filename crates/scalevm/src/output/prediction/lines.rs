//! Predictions as lines of JSON.

use super::{Group, LeftOut, Predicted, half};
use serde_json::{Value, json};
use studies::predict::Setup;
use studies::published::{Mode, Point, Unit, rate_at};

/// What a curve is, and the system and machine that represent its own.
pub fn described(setup: &Setup) -> Value {
    let curve = setup.curve;
    json!({
        "kind": "prediction",
        "curve": curve.id,
        "half": half(curve),
        "workload": curve.workload,
        "mode": match curve.mode {
            Mode::Processes => "processes",
            Mode::Threads => "threads",
        },
        "kernel": curve.kernel,
        "stands_in": setup.before.to_string(),
        "machine": setup.machine.name,
        "topology": setup.machine.topology.shape(),
        "unit": match curve.unit {
            Unit::Operations => "operations/s",
            Unit::Faults => "faults/s",
            Unit::TimesOne => "times one task",
        },
        "after": setup.pair().ok().flatten().map(|(after, _)| after.to_string()),
        "after_not_predicted": setup.pair().err(),
    })
}

/// A prediction, without what was measured if that is left out.
pub fn line(one: &Predicted, unscored: bool) -> Value {
    let (setup, prediction) = (&one.setup, &one.prediction);
    let mut line = described(setup);
    let fit = &prediction.fit;
    line["fitted"] = json!(fit.as_ref().ok());
    line["not_fitted"] = json!(fit.as_ref().err());
    line["mechanism"] = json!(prediction.mechanism.name());
    line["bottleneck"] = json!(prediction.bottleneck);
    let band = one.band();
    line["band"] =
        json!(band.map(|band| json!({ "kind": band.kind, "low": band.low, "high": band.high })));
    line["change"] = json!(prediction.change.map(|point| point.1));
    let measured = |point: &Point| rate_at(setup.measured(), point.0).filter(|_| !unscored);
    let points = prediction.points.iter().map(
        |point| json!({ "tasks": point.0, "predicted": point.1, "measured": measured(point) }),
    );
    line["points"] = points.collect();
    if unscored {
        return line;
    }
    line["measured_change"] = json!(one.change().map(|[_, measured]| measured));
    let score = one.score.as_ref();
    line["held_out"] = json!(score.map(|score| &score.counts));
    line["error"] = json!(score.map(|score| score.ours));
    line["usl_error"] = json!(score.and_then(|score| score.usl));
    line["linear_error"] = json!(score.map(|score| score.linear));
    line["knees"] = json!(score.and_then(|score| score.knees));
    line["holds"] = json!(one.holds());
    line
}

/// Prints that there is no prediction.
pub fn print_left_out((curve, why): &LeftOut) {
    let line = json!({
        "kind": "prediction",
        "curve": curve.id,
        "half": half(curve),
        "kernel": curve.kernel,
        "not_predicted": why,
    });
    println!("{line}");
}

pub fn print_summary((name, summary): &Group) {
    let line = json!({
        "kind": "predictions",
        "group": name,
        "curves": summary.curves,
        "sources": summary.sources,
        "error": summary.ours,
        "linear_error": summary.linear,
        "usl_error": summary.usl.map(|[usl, _]| usl),
        "error_beside_usl": summary.usl.map(|[_, ours]| ours),
        "knees": summary.knees,
        "signs": summary.signs,
    });
    println!("{line}");
}
