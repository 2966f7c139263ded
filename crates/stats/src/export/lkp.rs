//! The statistics that lkp-tests makes of will-it-scale: names, each with a number for each repetition.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Curve;
use crate::record::Mode;

/// What one repetition measured: its rate at a number of tasks of a kind.
type Repetition = BTreeMap<(u32, Mode), f64>;

/// The curve as lkp's `matrix.json`. A repetition is an invocation, or the n-th time that one measured the same point. What a
/// repetition has not measured is 0, as in lkp's matrices.
pub fn lkp(curve: &Curve<'_>) -> Value {
    let columns: Vec<BTreeMap<String, f64>> = repetitions(curve).iter().map(statistics).collect();
    let names: BTreeSet<&String> = columns.iter().flat_map(BTreeMap::keys).collect();
    let values = |name: &String| {
        let value = |column: &BTreeMap<String, f64>| column.get(name).copied().unwrap_or(0.0);
        Value::from(
            columns
                .iter()
                .map(|column| number(name, value(column)))
                .collect::<Vec<_>>(),
        )
    };
    let pairs = names
        .into_iter()
        .map(|name| (format!("will-it-scale.{name}"), values(name)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn repetitions(curve: &Curve<'_>) -> Vec<Repetition> {
    let mut found: BTreeMap<(&str, usize), Repetition> = BTreeMap::new();
    for tasks in curve.tasks() {
        for mode in Mode::BOTH {
            let mut times: BTreeMap<&str, usize> = BTreeMap::new();
            for run in curve.runs(tasks, mode) {
                let nth = times.entry(&run.file).or_default();
                let repetition = found.entry((&run.file, *nth)).or_default();
                repetition.insert((tasks, mode), run.figure);
                *nth += 1;
            }
        }
    }
    found.into_values().collect()
}

/// What lkp's parser makes of the table of one repetition.
fn statistics(rates: &Repetition) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let single = |mode| rates.get(&(1, mode)).copied().unwrap_or(0.0);
    let linear = single(Mode::Processes).max(single(Mode::Threads));
    for (&(tasks, mode), &rate) in rates {
        found.insert(format!("{tasks}.{}", mode.name()), rate);
        found.insert(format!("{tasks}.linear"), linear * f64::from(tasks));
        // The last and so the largest number of tasks stays.
        if mode == Mode::Processes && tasks > 1 && linear > 0.0 {
            found.insert("scalability".into(), rate / (linear * f64::from(tasks)));
        }
    }
    for (mode, name) in [
        (Mode::Processes, "per_process_ops"),
        (Mode::Threads, "per_thread_ops"),
    ] {
        let of_mode = rates.iter().filter(|(point, _)| point.1 == mode);
        let per_task: Vec<f64> = of_mode
            .map(|(point, rate)| rate / f64::from(point.0))
            .collect();
        if !per_task.is_empty() {
            found.insert(name.into(), crate::ministat::mean(&per_task));
        }
    }
    found.insert("workload".into(), rates.values().sum());
    found
}

/// lkp's numbers are whole but for the scalability.
fn number(name: &str, value: f64) -> Value {
    match name {
        "scalability" => Value::from(value),
        _ => Value::from(value as u64),
    }
}
