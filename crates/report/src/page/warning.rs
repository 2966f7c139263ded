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
    all.extend(sources.iter().flat_map(|source| source.notes.clone()));
    for of in [load, noise, crowded, cut_short] {
        let doubts = sources.iter().zip(files);
        let doubts = doubts.filter_map(|(source, file)| Some((of(source)?, file)));
        all.extend(together(doubts.collect()));
    }
    let profiled = sources.iter().flat_map(|source| &source.profiles);
    all.extend(profiled.filter_map(cost));
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

/// A doubt about a file, and how grave it is compared with the same doubt about others.
type Doubt = (f64, String);

/// The same doubt about several files in one sentence, which is that of the gravest.
fn together(mut doubts: Vec<(Doubt, &String)>) -> Option<String> {
    doubts.sort_by(|((a, _), _), ((b, _), _)| b.total_cmp(a));
    let ((_, sentence), file) = doubts.first()?;
    Some(match doubts.len() {
        1 => format!("{file}: {sentence}"),
        all => format!("{all} files, most of all {file}: {sentence}"),
    })
}

fn load(source: &Source) -> Option<Doubt> {
    let loads = source
        .machines()
        .flat_map(|m| [m.load_before, m.load_after]);
    let taken = |load: &Load| load.foreign + load.steal;
    let loud = loads.flatten().filter(|load| !load.quiet());
    let worst = loud.max_by(|a, b| taken(a).total_cmp(&taken(b)))?;
    let sentence = format!(
        "around a run, other processes used {:.2} and the hypervisor took {:.2} of {}: the machine \
         was not quiet.",
        worst.foreign,
        worst.steal,
        count(worst.cpus, "CPU")
    );
    Some((taken(&worst), sentence))
}

fn noise(source: &Source) -> Option<Doubt> {
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
    let sentence = format!(
        "the samples of {} {runs} vary by more than {:.0} %, most of all in {worst}: the deviation \
         is {:.0} % of the mean.",
        noisy.len(),
        100.0 * NOISE,
        100.0 * spread
    );
    Some((*spread, sentence))
}

/// Tasks that share CPUs measure the scheduler as well.
fn crowded(source: &Source) -> Option<Doubt> {
    let crowded = |record: &Record| match record {
        Record::Summary(summary) => {
            let cpus = summary.machine.as_ref()?.cpus?;
            let tasks = summary.totals.subject.tasks;
            (tasks > cpus).then_some((tasks, cpus))
        }
        Record::Sample(_) => None,
    };
    let (tasks, cpus) = source.records.iter().filter_map(crowded).max()?;
    let sentence = format!("up to {tasks} tasks shared {}.", count(cpus, "CPU"));
    Some((tasks.into(), sentence))
}

fn cut_short(source: &Source) -> Option<Doubt> {
    let cut = source.runs.iter().filter(|run| !run.complete);
    let cut: Vec<&Run> = cut.collect();
    let run = cut.first()?;
    let (tasks, system) = (mode_count(&run.subject), system(&run.subject));
    let workload = &run.subject.workload;
    let others = match cut.len() {
        1 => String::new(),
        all => format!(", and {} more", count(all as u32 - 1, "run")),
    };
    let sentence = format!("the run of {workload} on {system} with {tasks}{others} was cut short.");
    Some((cut.len() as f64, sentence))
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
