//! OpenMetrics 1.0 text: what Prometheus and its kin take in, old values with their times included.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Time;
use crate::history::{Kept, Key, Series};

/// All runs as gauges, a family for each unit of rates and a metric for each label of a series, and how many runs are left out
/// because nobody knows when they were made.
pub fn openmetrics(series: &[Series]) -> (String, usize) {
    let mut families: BTreeMap<String, Vec<&Series>> = BTreeMap::new();
    for one in series {
        families.entry(unit(&one.key.unit)).or_default().push(one);
    }
    let mut text = String::new();
    for (unit, series) in families {
        family(
            &mut text,
            &unit,
            "rate",
            "Rate of a run, the mean of its samples.",
            &series,
            |run| Some(run.figure),
        );
        let help = "Standard deviation of a run's samples.";
        family(&mut text, &unit, "rate_stddev", help, &series, deviation);
    }
    text += "# EOF\n";
    let runs = series.iter().flat_map(|one| &one.runs);
    (text, runs.filter(|run| run.time.is_none()).count())
}

/// One family; metrics are not interleaved and the points of each are in the order of their times.
fn family(
    text: &mut String,
    unit: &str,
    what: &str,
    help: &str,
    series: &[&Series],
    value: impl Fn(&Kept) -> Option<f64>,
) {
    let name = format!("scalevm_{what}_{unit}");
    let mut lines = format!("# TYPE {name} gauge\n# UNIT {name} {unit}\n# HELP {name} {help}\n");
    for one in series {
        for runs in one.runs.chunk_by(|a, b| a.label == b.label) {
            let labels = labels(&one.key, &runs[0].label);
            for run in runs {
                if let (Some(time), Some(value)) = (run.time, value(run)) {
                    // Writing to a string does not fail.
                    let _ = writeln!(lines, "{name}{{{labels}}} {value:?} {}", seconds(time));
                }
            }
        }
    }
    *text += &lines;
}

fn deviation(run: &Kept) -> Option<f64> {
    let several = run.samples.len() > 1;
    several.then(|| crate::ministat::variance(&run.samples).sqrt())
}

fn labels(key: &Key, label: &str) -> String {
    let tasks = key.tasks.to_string();
    let pairs = [
        ("workload", key.workload.as_str()),
        ("on", &key.on),
        ("vm", key.vm.as_deref().unwrap_or("")),
        ("mode", key.mode.name()),
        ("tasks", &tasks),
        ("machine", &key.machine),
        ("label", label),
    ];
    // An empty label is the same as none.
    let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    pairs.join(",")
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// With three decimals and no exponent, as times want to be exact.
fn seconds(time: Time) -> String {
    let milliseconds = time.milliseconds();
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// `operations/s` as it may stand in a name: `operations_per_second`.
fn unit(unit: &str) -> String {
    let words = match unit.strip_suffix("/s") {
        Some(what) => format!("{what}_per_second"),
        None => unit.to_owned(),
    };
    words
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect()
}
