//! Names for display.

use crate::Source;
use stats::record::{Record, Subject};
use std::path::Path;

/// A short unique name for each file.
pub fn files(sources: &[Source]) -> Vec<String> {
    let short = |path: &str| {
        let name = Path::new(path).file_name();
        name.map_or(path.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let shorts: Vec<String> = sources.iter().map(|one| short(&one.name)).collect();
    let twice = |names: &[String], name: &String| names.iter().filter(|one| *one == name).count();
    let longer = |(index, name): (usize, &String)| match twice(&shorts, name) {
        1 => name.clone(),
        _ => sources[index].name.clone(),
    };
    let paths: Vec<String> = shorts.iter().enumerate().map(longer).collect();
    let number = |index: usize| twice(&paths[..=index], &paths[index]);
    let numbered = |(index, name): (usize, &String)| match twice(&paths, name) {
        1 => name.clone(),
        _ => format!("{name} ({})", number(index)),
    };
    paths.iter().enumerate().map(numbered).collect()
}

/// The workloads, for the title.
pub fn workloads(sources: &[Source]) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for subject in sources.iter().flat_map(subjects) {
        if !all.contains(&subject.workload.as_str()) {
            all.push(&subject.workload);
        }
    }
    all
}

/// The subjects of a file's records and profiles.
pub fn subjects(source: &Source) -> impl Iterator<Item = &Subject> {
    let of_records = source.records.iter().map(|one| match one {
        Record::Sample(sample) => &sample.subject,
        Record::Summary(summary) => &summary.totals.subject,
    });
    of_records.chain(source.profiles.iter().map(|one| &one.subject))
}

/// The name of the system: `os`, `freebsd-di`.
pub fn system(subject: &Subject) -> &str {
    subject.vm.as_ref().unwrap_or(&subject.on)
}

/// The name of the simulated machine: `freebsd-96 (2x24x2)`.
pub fn machine(subject: &Subject) -> Option<String> {
    let name = subject.profile.as_ref()?;
    Some(match &subject.topology {
        Some(topology) => format!("{name} ({topology})"),
        None => name.clone(),
    })
}

/// ` on ` and that machine; empty on a real one.
pub fn on_machine(machine: Option<&str>) -> String {
    machine.map_or(String::new(), |name| format!(" on {name}"))
}

/// `4 threads`, `1 process`.
pub fn mode_count(subject: &Subject) -> String {
    subject.mode.count(subject.tasks as usize)
}

/// `mmap1 on os, 4 threads`; `process 4711 (redis-server)`.
pub fn described(subject: &Subject) -> String {
    let (workload, system) = (&subject.workload, system(subject));
    if subject.already_ran() {
        return workload.clone();
    }
    let machine = on_machine(machine(subject).as_deref());
    format!("{workload} on {system}{machine}, {}", mode_count(subject))
}
