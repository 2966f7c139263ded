//! Predictions as lines of JSON.

use super::{Group, LeftOut, Predicted, Shown, half};
use serde_json::{Value, json};
use studies::predict::Setup;
use studies::published::{Point, Unit, rate_at};

/// What a curve is, and the system and machine that represent its own.
pub fn described(setup: &Setup, own: bool) -> Value {
    let curve = setup.curve;
    json!({
        "kind": "prediction",
        "curve": curve.id,
        "half": (!own).then(|| half(curve)),
        "workload": curve.workload,
        "mode": curve.mode.name(),
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
pub fn line(one: &Predicted, shown: &Shown) -> Value {
    let (setup, prediction) = (&one.setup, &one.prediction);
    let mut line = described(setup, shown.own);
    line["fitted"] = json!(prediction.fit);
    line["mechanism"] = json!(prediction.mechanism.name());
    line["bottleneck"] = json!(prediction.bottleneck);
    let band = one.band();
    line["band"] =
        json!(band.map(|band| json!({ "kind": band.kind, "low": band.low, "high": band.high })));
    let expected = &prediction.expected;
    line["compared_curves"] = json!(expected.curves);
    line["worst_compared"] = json!((expected.curves > 0).then_some(expected.worst));
    line["change"] = json!(prediction.change.map(|point| point.1));
    let measured = |point: &Point| rate_at(setup.measured(), point.0).filter(|_| !shown.unscored);
    let points = prediction.points.iter().map(
        |point| json!({ "tasks": point.0, "predicted": point.1, "measured": measured(point) }),
    );
    line["points"] = points.collect();
    if shown.unscored {
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
pub fn print_left_out((curve, why): &LeftOut, own: bool) {
    let line = json!({
        "kind": "prediction",
        "curve": curve.id,
        "half": (!own).then(|| half(curve)),
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
