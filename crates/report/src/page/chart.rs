//! Rates over tasks: one chart for each workload, mode and simulated machine, with one series for
//! each system.

use super::name::{machine, system};
use crate::Source;
use stats::curve::{Curve, Point};
use stats::ministat::{Confidence, mean, stddev};
use stats::record::{Mode, Run, Subject};
use stats::usl::Law;

pub struct Chart {
    pub workload: String,
    /// The tasks' kind.
    pub mode: Mode,
    /// The simulated machine, if it is one.
    pub machine: Option<String>,
    /// Unit of the rates.
    pub unit: String,
    /// The curves, in the order of the files.
    pub series: Vec<Series>,
    /// The number of series left out because their files lie between the first and the last.
    pub left_out: usize,
}

/// One system's curve.
pub struct Series {
    /// Colour and marks: one system has the same in all charts of a page.
    pub colour: usize,
    /// The system's name, without file and label.
    system: String,
    /// The name of the series.
    pub name: String,
    /// The dots, by ascending tasks.
    pub dots: Vec<Dot>,
    /// Peak, knee and collapse, if there are two points.
    pub shape: Option<Curve>,
    /// The fitted law, if there are at least four points: three fit any law.
    pub law: Option<Law>,
}

/// The rate at one number of tasks.
pub struct Dot {
    /// Tasks at work.
    pub tasks: u32,
    /// The mean rate.
    pub rate: f64,
    /// 95 % interval of the mean, if there are two values.
    pub band: Option<(f64, f64)>,
    /// The number of values.
    pub count: usize,
    /// The kind of each value.
    pub basis: Basis,
}

/// The basis of a mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    Runs,
    /// Simulated runs, each with its own seed.
    Seeds,
    /// Samples of a single run, which are not independent.
    Samples,
}

/// The identity of a chart.
type Key = (String, Mode, Option<String>, String);

/// A system's runs in one file under one label.
struct Found<'a> {
    file: usize,
    label: Option<&'a str>,
    system: &'a str,
    runs: Vec<&'a Run>,
}

/// All charts, in the order of their workloads in the files.
pub fn charts(sources: &[Source], files: &[String]) -> Vec<Chart> {
    let mut found: Vec<(Key, Vec<Found<'_>>)> = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        for run in &source.runs {
            let Subject {
                workload,
                mode,
                unit,
                ..
            } = &run.subject;
            let machine = machine(&run.subject);
            let key = (workload.clone(), *mode, machine, unit.clone());
            let at = found.iter().position(|(one, _)| *one == key);
            let at = at.unwrap_or_else(|| {
                found.push((key, Vec::new()));
                found.len() - 1
            });
            add(&mut found[at].1, file, run);
        }
    }
    let chart = |((workload, mode, machine, unit), found): (Key, Vec<Found<'_>>)| {
        let (series, left_out) = all_series(&found, files);
        Chart {
            workload,
            mode,
            machine,
            unit,
            series,
            left_out,
        }
    };
    let mut charts: Vec<Chart> = found.into_iter().map(chart).collect();
    colour(&mut charts);
    charts
}

/// Gives each system one colour in all charts; further series of the same system in a chart get
/// colours of their own.
fn colour(charts: &mut [Chart]) {
    let mut known: Vec<(String, usize)> = Vec::new();
    for chart in charts {
        let mut here: Vec<(String, usize)> = Vec::new();
        for series in &mut chart.series {
            let nth = here.iter().filter(|one| one.0 == series.system).count();
            let key = (series.system.clone(), nth);
            here.push(key.clone());
            let at = known.iter().position(|one| *one == key);
            series.colour = at.unwrap_or_else(|| {
                known.push(key);
                known.len() - 1
            });
        }
    }
}

fn add<'a>(found: &mut Vec<Found<'a>>, file: usize, run: &'a Run) {
    let (system, label) = (system(&run.subject), run.label.as_deref());
    let same = |one: &&mut Found<'_>| (one.file, one.label, one.system) == (file, label, system);
    match found.iter_mut().find(same) {
        Some(one) => one.runs.push(run),
        None => found.push(Found {
            file,
            label,
            system,
            runs: vec![run],
        }),
    }
}

/// Of a system's many series (files or labels), keeps the first and the last: more would be
/// unreadable.
fn all_series(found: &[Found<'_>], files: &[String]) -> (Vec<Series>, usize) {
    let mut shown = Vec::new();
    for (index, one) in found.iter().enumerate() {
        let same = |other: &&Found<'_>| other.system == one.system;
        let before = found[..index].iter().any(|other| same(&other));
        let after = found[index + 1..].iter().any(|other| same(&other));
        if before && after {
            continue;
        }
        let labels = found.iter().filter(same).map(|other| other.label);
        let labels: Vec<Option<&str>> = labels.collect();
        let name = match (labels.as_slice(), one.label) {
            ([_], _) => one.system.to_owned(),
            ([first, .., last], Some(label)) if first != last => {
                format!("{}, {label}", one.system)
            }
            _ => format!("{}, {}", one.system, files[one.file]),
        };
        shown.push(series(name, one.system, &one.runs));
    }
    let left_out = found.len() - shown.len();
    (shown, left_out)
}

fn series(name: String, system: &str, runs: &[&Run]) -> Series {
    let mut tasks: Vec<u32> = runs.iter().map(|run| run.subject.tasks).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let dot = |&tasks: &u32| dot(tasks, runs);
    let dots: Vec<Dot> = tasks.iter().map(dot).collect();
    let point = |dot: &Dot| Point {
        cpus: dot.tasks,
        throughput: dot.rate,
    };
    let points: Vec<Point> = dots.iter().map(point).collect();
    let law = (points.len() > 3).then(|| Law::fit(&points).ok()).flatten();
    Series {
        colour: 0,
        system: system.to_owned(),
        name,
        shape: Curve::of(&points).ok(),
        law,
        dots,
    }
}

fn dot(tasks: u32, runs: &[&Run]) -> Dot {
    let at = runs.iter().filter(|run| run.subject.tasks == tasks);
    let runs: Vec<&Run> = at.copied().collect();
    let (values, basis) = values(&runs);
    Dot {
        tasks,
        rate: mean(&values),
        band: interval(&values),
        count: values.len(),
        basis,
    }
}

/// The independent rates and their kind: each simulated sample has a machine of its own, samples of
/// a real run do not.
pub fn values(runs: &[&Run]) -> (Vec<f64>, Basis) {
    let samples = || runs.iter().flat_map(|run| run.totals.clone()).collect();
    let averages = || runs.iter().map(|run| run.average).collect();
    let kept = runs.iter().any(|run| !run.totals.is_empty());
    let simulated = runs.first().is_some_and(|run| run.subject.on == "sim");
    match (kept, simulated, runs.len()) {
        (true, true, _) => (samples(), Basis::Seeds),
        (false, true, _) => (averages(), Basis::Seeds),
        (true, false, 1) => (samples(), Basis::Samples),
        _ => (averages(), Basis::Runs),
    }
}

/// The 95 % interval of the mean, by Student's t; not below 0.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let error = stddev(values) / (values.len() as f64).sqrt();
    let reach = Confidence::P95.critical(values.len() - 1) * error;
    let middle = mean(values);
    Some(((middle - reach).max(0.0), middle + reach))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_students_t() {
        // Mean 3, deviation √2.5, t(4) = 2.776: ± 2.776 · √0.5.
        let (low, high) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((high - 3.0 - 2.776 * 0.5_f64.sqrt()).abs() < 1e-9, "{high}");
        assert!((low + high - 6.0).abs() < 1e-9, "{low}");
        assert_eq!(interval(&[1.0, 9.0]).unwrap().0, 0.0);
        assert_eq!(interval(&[1.0]), None);
    }
}
