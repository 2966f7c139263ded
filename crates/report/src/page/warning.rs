//! Reasons to doubt the results.

use super::likeness::apart;
use super::machine::Machines;
use super::name::{described, mode_count, system};
use crate::Source;
use profile::Profile;
use stats::count;
use stats::environment::Load;
use stats::record::{Record, Run};

/// Samples of a run that vary more than this are noisy.
const NOISE: f64 = 0.05;
/// Watching a run may cost this share of its rate; more disturbs it.
const COST: f64 = 0.05;

/// Warnings, the most serious first.
pub fn warnings(sources: &[Source], files: &[String], machines: &Machines) -> Vec<String> {
    let mut all = Vec::new();
    let differences = machines.differences();
    if !differences.is_empty() {
        let list = differences.join(", ");
        all.push(format!(
            "The files were taken on machines that differ in: {list}."
        ));
    }
    for (source, file) in sources.iter().zip(files) {
        all.extend(source.notes.clone());
        all.extend(load(source, file));
        all.extend(noise(source, file));
        all.extend(crowded(source, file));
        all.extend(cut_short(source, file));
        all.extend(source.profiles.iter().filter_map(cost));
    }
    let profiles: Vec<&Profile> = sources.iter().flat_map(|one| &one.profiles).collect();
    all.extend(apart(&profiles));
    all.extend(notes(&profiles));
    let mut unique: Vec<String> = Vec::new();
    for warning in all {
        if !unique.contains(&warning) {
            unique.push(warning);
        }
    }
    unique
}

fn load(source: &Source, file: &str) -> Option<String> {
    let loads = source
        .machines()
        .flat_map(|m| [m.load_before, m.load_after]);
    let taken = |load: &Load| load.foreign + load.steal;
    let loud = loads.flatten().filter(|load| !load.quiet());
    let worst = loud.max_by(|a, b| taken(a).total_cmp(&taken(b)))?;
    Some(format!(
        "{file}: around a run, other processes used {:.2} and the hypervisor took {:.2} of {}: the \
         machine was not quiet.",
        worst.foreign,
        worst.steal,
        count(worst.cpus, "CPU")
    ))
}

fn noise(source: &Source, file: &str) -> Option<String> {
    let noisy = |record: &Record| match record {
        Record::Summary(summary) if summary.totals.average > 0.0 => {
            let spread = summary.stddev? / summary.totals.average;
            (spread > NOISE).then(|| (spread, described(&summary.totals.subject)))
        }
        _ => None,
    };
    let noisy: Vec<(f64, String)> = source.records.iter().filter_map(noisy).collect();
    let (spread, worst) = noisy.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let runs = if noisy.len() == 1 { "run" } else { "runs" };
    Some(format!(
        "{file}: the samples of {} {runs} vary by more than {:.0} %, most of all in {worst}: the \
         deviation is {:.0} % of the mean.",
        noisy.len(),
        100.0 * NOISE,
        100.0 * spread
    ))
}

/// Tasks that share CPUs measure the scheduler as well.
fn crowded(source: &Source, file: &str) -> Option<String> {
    let crowded = |record: &Record| match record {
        Record::Summary(summary) => {
            let cpus = summary.machine.as_ref()?.cpus?;
            let tasks = summary.totals.subject.tasks;
            (tasks > cpus).then_some((tasks, cpus))
        }
        Record::Sample(_) => None,
    };
    let (tasks, cpus) = source.records.iter().filter_map(crowded).max()?;
    let cpus = count(cpus, "CPU");
    Some(format!("{file}: up to {tasks} tasks shared {cpus}."))
}

fn cut_short(source: &Source, file: &str) -> Vec<String> {
    let cut = source.runs.iter().filter(|run| !run.complete);
    let line = |run: &Run| {
        let (tasks, system) = (mode_count(&run.subject), system(&run.subject));
        let workload = &run.subject.workload;
        format!("{file}: the run of {workload} on {system} with {tasks} was cut short.")
    };
    cut.map(line).collect()
}

fn cost(profile: &Profile) -> Option<String> {
    let what = described(&profile.subject);
    let cost = profile.cost().filter(|&cost| cost > COST)?;
    Some(format!(
        "Profile of {what}: watching it cost {:.0} % of its rate.",
        100.0 * cost
    ))
}

/// The profiles' own notes; a note that several share appears once.
fn notes(profiles: &[&Profile]) -> Vec<String> {
    let all = profiles.iter().flat_map(|one| &one.notes);
    let line = |note: &String| {
        let mut of = profiles.iter().filter(|one| one.notes.contains(note));
        match (of.next(), of.count()) {
            (Some(one), 0) => format!("Profile of {}: {note}", described(&one.subject)),
            (_, others) => format!("{} profiles: {note}", others + 1),
        }
    };
    all.map(line).collect()
}
