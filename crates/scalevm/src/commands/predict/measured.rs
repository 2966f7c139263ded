//! Curves from the user's own results.

use bench::Failure;
use report::Source;
use stats::record::{self, Run};
use std::path::Path;
use studies::published::{self, Curve, How, Machine, Mode, Point, Unit};

/// The curves in a file or store of results, of a computer with `cpus` CPUs: complete runs of one
/// workload, mode and system, with more tasks each. Of two runs with equally many tasks the later
/// one counts.
pub fn curves(path: &Path, cpus: usize) -> Result<Vec<Curve>, Failure> {
    let source = Source::read(&path.display().to_string())?;
    let mut curves: Vec<Curve> = Vec::new();
    for run in source.runs.iter().filter(|run| run.complete) {
        let new = curve(run, &source.name, cpus);
        let same = |old: &&mut Curve| old.id == new.id && old.kernel == new.kernel;
        match curves.iter_mut().find(same) {
            Some(old) => {
                old.points.retain(|point| point.0 != run.subject.tasks);
                old.points.extend(new.points);
            }
            None => curves.push(new),
        }
    }
    let points = curves.iter_mut().map(|curve| &mut curve.points);
    points.for_each(|points| points.sort_by_key(|point| point.0));
    Ok(curves)
}

/// The one point of a run.
fn curve(run: &Run, file: &str, cpus: usize) -> Curve {
    let record::Subject {
        workload, on, vm, ..
    } = &run.subject;
    let mode = match run.subject.mode {
        record::Mode::Processes => Mode::Processes,
        record::Mode::Threads => Mode::Threads,
    };
    let kernel = vm.as_ref().or(run.label.as_ref()).unwrap_or(on);
    Curve {
        id: format!("{workload}-{}", run.subject.mode.name()),
        source: published::Source {
            title: file.to_owned(),
            author: String::new(),
            date: String::new(),
            address: file.to_owned(),
            how: How::Table,
            note: None,
        },
        machine: Machine {
            cpu: "measured here".into(),
            cpus: cpus as u32,
            sockets: None,
            cores: None,
            threads: None,
            nodes: None,
            memory: None,
            note: None,
        },
        workload: workload.clone(),
        mode,
        kernel: kernel.clone(),
        unit: Unit::Operations,
        note: None,
        points: vec![Point(run.subject.tasks, run.average)],
        after: None,
    }
}
