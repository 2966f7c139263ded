//! Before and after: which runs stand against which, and what they say.

use super::chart::{Basis, values};
use super::name::{described, machine, mode_count, on_machine, system};
use crate::source::{Paired, Side, Source};
use stats::ministat::{Dataset, Options, report};
use stats::record::{self, Run, Subject};
use stats::verdict::{Rule, Verdict, judge};

/// Differences that matter, as `compare` has them: a model can not rank what lies closer.
const MINIMUM_EFFECT: f64 = 0.01;
const SIMULATED_EFFECT: f64 = 0.2;

/// Two sides.
pub struct Comparison {
    /// One line on what was run.
    pub about: String,
    /// Where the sides come from.
    pub origin: Origin,
    /// Tasks at work; 0 if not known.
    pub tasks: u32,
    /// Unit of the rates.
    pub unit: String,
    /// The base.
    pub before: Side,
    /// What is judged.
    pub after: Side,
    /// What the numbers of the sides are.
    pub basis: Basis,
    /// Whether the sides took turns.
    pub interleaved: bool,
    /// ministat's report, if there are numbers enough.
    pub table: Option<String>,
    /// What they say.
    pub outcome: Outcome,
    /// The smallest difference that matters, as a share.
    pub minimum_effect: f64,
}

/// Where two sides come from; what was asked for more clearly is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Two systems of one file.
    File,
    /// Two files.
    Files,
    /// A comparison, which took the sides in turn.
    Turns,
}

/// What two sides say.
pub enum Outcome {
    /// Judged by the rank test.
    Judged(Verdict),
    /// Not to be judged, and why.
    Undecided(String),
}

/// All comparisons: what was run in turn; the first and last file that hold runs of the
/// same thing; and within one file its first system with its others.
pub fn comparisons(sources: &[Source], files: &[String]) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = sources
        .iter()
        .flat_map(|one| &one.paired)
        .map(paired)
        .collect();
    let complete = |source: &Source| {
        let mut runs = record::runs(&source.records);
        runs.retain(|run| run.complete);
        runs
    };
    let runs: Vec<Vec<Run>> = sources.iter().map(complete).collect();
    let mut seen: Vec<&Subject> = Vec::new();
    for run in runs.iter().flatten() {
        if !seen.iter().any(|one| alike(one, &run.subject)) {
            seen.push(&run.subject);
            all.extend(at(&run.subject, &runs, files));
        }
    }
    all
}

fn paired(pair: &Paired) -> Comparison {
    Comparison {
        interleaved: pair.interleaved,
        ..compare(Sides {
            about: pair.about.clone(),
            origin: Origin::Turns,
            tasks: 0,
            unit: &pair.unit,
            sides: [pair.a.clone(), pair.b.clone()],
            basis: Basis::Runs,
            minimum_effect: pair.minimum_effect,
        })
    }
}

/// The runs of one system in one file.
struct Group<'a> {
    file: usize,
    system: String,
    runs: Vec<&'a Run>,
}

/// What is compared at one workload and number of tasks.
fn at(point: &Subject, runs: &[Vec<Run>], files: &[String]) -> Vec<Comparison> {
    let groups = groups(point, runs);
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else {
        return Vec::new();
    };
    if first.file == last.file {
        return within(point, &groups);
    }
    let of = |file| groups.iter().filter(move |group| group.file == file);
    let (before, after): (Vec<_>, Vec<_>) = (of(first.file).collect(), of(last.file).collect());
    let name = |group: &Group<'_>| files[group.file].clone();
    let mut found = Vec::new();
    for a in &before {
        if let Some(b) = after.iter().find(|group| group.system == a.system) {
            let about = described(&a.runs[0].subject);
            let sides = [(name(a), a), (name(b), b)];
            found.push(pair(point, Origin::Files, about, sides));
        }
    }
    if let (true, [a], [b]) = (found.is_empty(), &before[..], &after[..]) {
        let full = |group: &Group<'_>| format!("{}, {}", group.system, name(group));
        let sides = [(full(a), *a), (full(b), *b)];
        found.push(pair(point, Origin::Files, about(point), sides));
    }
    found
}

/// A system beside the first of its file, where there is enough to judge them.
fn within(point: &Subject, groups: &[Group<'_>]) -> Vec<Comparison> {
    let judgeable = |group: &Group<'_>| {
        let (values, basis) = values(&group.runs);
        basis != Basis::Samples && values.len() > 1
    };
    let Some((first, others)) = groups.split_first() else {
        return Vec::new();
    };
    let others = others
        .iter()
        .filter(|group| judgeable(first) && judgeable(group));
    let compare = |group: &Group<'_>| {
        let sides = [(first.system.clone(), first), (group.system.clone(), group)];
        pair(point, Origin::File, about(point), sides)
    };
    others.map(compare).collect()
}

fn groups<'a>(point: &Subject, runs: &'a [Vec<Run>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (file, runs) in runs.iter().enumerate() {
        for run in runs.iter().filter(|run| alike(&run.subject, point)) {
            let system = system(&run.subject).to_owned();
            let same = |one: &&mut Group<'_>| one.file == file && one.system == system;
            match groups.iter_mut().find(same) {
                Some(group) => group.runs.push(run),
                None => groups.push(Group {
                    file,
                    system,
                    runs: vec![run],
                }),
            }
        }
    }
    groups
}

fn pair(
    point: &Subject,
    origin: Origin,
    about: String,
    sides: [(String, &Group<'_>); 2],
) -> Comparison {
    let [a, b] = [&sides[0].1.runs, &sides[1].1.runs].map(|runs| values(runs));
    let simulated = a.1 == Basis::Seeds && b.1 == Basis::Seeds;
    let minimum_effect = match simulated {
        true => SIMULATED_EFFECT,
        false => MINIMUM_EFFECT,
    };
    let [name_a, name_b] = sides.map(|(name, _)| name);
    compare(Sides {
        about,
        origin,
        tasks: point.tasks,
        unit: &point.unit,
        basis: a.1.max(b.1),
        sides: [(name_a, a.0), (name_b, b.0)].map(|(name, runs)| Side { name, runs }),
        minimum_effect,
    })
}

struct Sides<'a> {
    about: String,
    origin: Origin,
    tasks: u32,
    unit: &'a str,
    sides: [Side; 2],
    basis: Basis,
    minimum_effect: f64,
}

fn compare(given: Sides<'_>) -> Comparison {
    let [before, after] = given.sides;
    let rule = Rule {
        minimum_effect: given.minimum_effect,
        ..Rule::default()
    };
    let outcome = match given.basis {
        Basis::Samples => Outcome::Undecided(
            "a side has one run, and samples of one run are not independent runs".into(),
        ),
        _ => match judge(&before.runs, &after.runs, &rule) {
            Ok(verdict) => Outcome::Judged(verdict),
            Err(error) => Outcome::Undecided(format!("A is before, B is after: {error}")),
        },
    };
    Comparison {
        about: given.about,
        origin: given.origin,
        tasks: given.tasks,
        unit: given.unit.to_owned(),
        table: table(&before, &after),
        before,
        after,
        basis: given.basis,
        interleaved: false,
        outcome,
        minimum_effect: given.minimum_effect,
    }
}

fn table(before: &Side, after: &Side) -> Option<String> {
    let set = |side: &Side| Dataset::new(&side.name, side.runs.clone()).ok();
    report(&[set(before)?, set(after)?], &Options::default()).ok()
}

/// What two systems did: `mmap1 on freebsd-96 (2x24x2), 96 processes`.
fn about(point: &Subject) -> String {
    let machine = on_machine(machine(point).as_deref());
    format!("{}{machine}, {}", point.workload, mode_count(point))
}

/// Whether two runs may be compared: the system may differ, what it did may not.
fn alike(a: &Subject, b: &Subject) -> bool {
    let key = |one: &Subject| {
        (
            one.workload.clone(),
            one.tasks,
            one.mode,
            one.unit.clone(),
            machine(one),
        )
    };
    key(a) == key(b)
}
