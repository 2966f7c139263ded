//! Gathers a store into series.

use std::collections::BTreeMap;

use super::{Kept, Key, Series};
use crate::Time;
use crate::environment::Environment;
use crate::record::{Run, Subject};
use crate::store::Store;

/// The label of a run whose record has none and does not name the measured version.
pub const UNLABELLED: &str = "unlabelled";

/// The contents of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The series, by key.
    pub series: Vec<Series>,
    /// The number of runs that were cut short; they are in no series.
    pub cut_short: usize,
}

/// Gathers the complete runs of a store.
pub fn gather(store: &Store) -> History {
    let mut history = History::default();
    let mut found: BTreeMap<Key, Vec<(Time, Kept)>> = BTreeMap::new();
    for file in &store.files {
        // A run without a time sorts with its predecessor in the file.
        let mut last = Time::from_milliseconds(0);
        for run in file.runs() {
            if !run.complete {
                history.cut_short += 1;
                continue;
            }
            last = run.time.unwrap_or(last);
            let key = Key::of(&run.subject, run.machine.as_deref());
            let kept = keep(run, &file.path);
            found.entry(key).or_default().push((last, kept));
        }
    }
    history.series = found
        .into_iter()
        .map(|(key, runs)| Series {
            key,
            runs: in_order(runs),
        })
        .collect();
    history
}

fn keep(run: Run, file: &str) -> Kept {
    Kept {
        time: run.time,
        label: run
            .label
            .unwrap_or_else(|| label(&run.subject, run.machine.as_deref())),
        figure: run.average,
        samples: run.totals,
        seed: run.subject.seed,
        machine: run.machine,
        file: file.into(),
    }
}

/// The build or kernel that was measured, as far as an old record tells.
fn label(subject: &Subject, machine: Option<&Environment>) -> String {
    let known = machine.and_then(|machine| machine.measured(&subject.on));
    known.unwrap_or_else(|| UNLABELLED.into())
}

/// Sorts runs by time, then groups those of one label.
fn in_order(mut runs: Vec<(Time, Kept)>) -> Vec<Kept> {
    runs.sort_by_key(|run| run.0);
    let mut labels: Vec<String> = Vec::new();
    for (_, run) in &runs {
        if !labels.contains(&run.label) {
            labels.push(run.label.clone());
        }
    }
    let place = |run: &Kept| labels.iter().position(|label| *label == run.label);
    let mut runs: Vec<Kept> = runs.into_iter().map(|run| run.1).collect();
    runs.sort_by_key(place);
    runs
}
