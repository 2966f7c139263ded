//! Before and after: which runs are compared, and the result.

use super::chart::{Basis, values};
use super::name::{described, machine, mode_count, on_machine, system};
use crate::source::{Paired, Side, Source};
use stats::general;
use stats::ministat::{Dataset, Options, report};
use stats::record::{Run, Subject};
use stats::verdict::{Better, MINIMUM_EFFECT, Rule, SIMULATED_EFFECT, Verdict, judge};

/// Two sides.
pub struct Comparison {
    /// One line on the workload.
    pub about: String,
    /// Where the sides come from.
    pub origin: Origin,
    /// Tasks at work; 0 if unknown.
    pub tasks: u32,
    /// Unit of the numbers.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// The base.
    pub before: Side,
    /// The side that is judged.
    pub after: Side,
    /// The kind of each number.
    pub basis: Basis,
    /// True if the sides took turns.
    pub interleaved: bool,
    /// ministat's report, if there are enough numbers.
    pub table: Option<String>,
    /// The result.
    pub outcome: Outcome,
    /// The smallest difference that matters, as a share.
    pub minimum_effect: f64,
}

impl Comparison {
    /// Returns true if both sides are simulated: then the model's error bounds what can be told.
    pub fn is_simulated(&self) -> bool {
        self.basis == Basis::Seeds
    }

    /// The least ratio at which rates are told apart, in words.
    pub fn told_from(&self) -> String {
        format!("{} times", general(1.0 + self.minimum_effect, 4))
    }
}

/// Where two sides come from; a more explicit request is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Two systems of one file.
    File,
    /// Two files.
    Files,
    /// A comparison that alternated between the sides.
    Turns,
}

/// The result of comparing two sides.
pub enum Outcome {
    /// Judged by the rank test.
    Judged(Verdict),
    /// Cannot be judged, and why.
    Undecided(String),
}

/// All comparisons: runs that took turns; the first and the last file with runs of the same
/// subject; and within one file its first system with each other one, and a system's first label
/// with its last.
pub fn comparisons(sources: &[Source], files: &[String]) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = sources
        .iter()
        .flat_map(|one| &one.paired)
        .map(paired)
        .collect();
    let complete = sources.iter().map(|source| {
        let runs = source.runs.iter();
        runs.filter(|run| run.complete).collect()
    });
    let runs: Vec<Vec<&Run>> = complete.collect();
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
            better: pair.better,
            sides: [pair.a.clone(), pair.b.clone()],
            basis: match pair.simulated {
                true => Basis::Seeds,
                false => Basis::Runs,
            },
            minimum_effect: pair.minimum_effect,
        })
    }
}

/// The runs of one system in one file under one label.
struct Group<'a> {
    file: usize,
    system: &'a str,
    label: Option<&'a str>,
    runs: Vec<&'a Run>,
}

/// The comparisons at one workload and number of tasks.
fn at(point: &Subject, runs: &[Vec<&Run>], files: &[String]) -> Vec<Comparison> {
    let groups = groups(point, runs);
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else {
        return Vec::new();
    };
    if first.file == last.file {
        return within(point, &groups, &files[first.file]);
    }
    let of = |file| groups.iter().filter(move |group| group.file == file);
    let (before, after): (Vec<_>, Vec<_>) = (of(first.file).collect(), of(last.file).collect());
    let name = |group: &Group<'_>| files[group.file].clone();
    let mut found = Vec::new();
    for a in &before {
        if let Some(b) = after.iter().rfind(|group| group.system == a.system) {
            let about = described(&a.runs[0].subject);
            let sides = [(name(a), *a), (name(b), *b)];
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

/// The comparisons within one file, where there are enough runs to judge.
fn within(point: &Subject, groups: &[Group<'_>], file: &str) -> Vec<Comparison> {
    let judgeable = |group: &Group<'_>| {
        let (values, basis) = values(&group.runs);
        basis != Basis::Samples && values.len() > 1
    };
    let mut found = Vec::new();
    for (index, b) in groups.iter().enumerate().skip(1) {
        let same = |other: &&Group<'_>| other.system == b.system;
        let earlier = groups[..index].iter().find(same);
        if earlier.is_some() && groups[index + 1..].iter().any(|other| same(&other)) {
            continue; // a label between the first and the last
        }
        let a = earlier.unwrap_or(&groups[0]);
        if !judgeable(a) || !judgeable(b) {
            continue;
        }
        let label = |group: &Group<'_>| group.label.unwrap_or(file).to_owned();
        let (about, names) = match earlier {
            Some(_) => (described(&b.runs[0].subject), [label(a), label(b)]),
            None => (about(point), [a, b].map(|group| group.system.to_owned())),
        };
        let [name_a, name_b] = names;
        let sides = [(name_a, a), (name_b, b)];
        found.push(pair(point, Origin::File, about, sides));
    }
    found
}

fn groups<'a>(point: &Subject, runs: &[Vec<&'a Run>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (file, runs) in runs.iter().enumerate() {
        for run in runs.iter().filter(|run| alike(&run.subject, point)) {
            let (system, label) = (system(&run.subject), run.label.as_deref());
            let key = (file, system, label);
            let same = |one: &&mut Group<'_>| (one.file, one.system, one.label) == key;
            match groups.iter_mut().find(same) {
                Some(group) => group.runs.push(run),
                None => groups.push(Group {
                    file,
                    system,
                    label,
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
    let minimum_effect = if simulated {
        SIMULATED_EFFECT
    } else {
        MINIMUM_EFFECT
    };
    let interleaved = in_turn(sides.each_ref().map(|(_, group)| group.runs.as_slice()));
    let [name_a, name_b] = sides.map(|(name, _)| name);
    let compared = compare(Sides {
        about,
        origin,
        tasks: point.tasks,
        unit: &point.unit,
        better: Better::Higher,
        basis: a.1.max(b.1),
        sides: [(name_a, a.0), (name_b, b.0)].map(|(name, runs)| Side { name, runs }),
        minimum_effect,
    });
    Comparison {
        interleaved,
        ..compared
    }
}

/// Returns true if the sides took turns, judging by the times of their runs.
fn in_turn(sides: [&[&Run]; 2]) -> bool {
    let mut order = Vec::new();
    for (side, runs) in sides.into_iter().enumerate() {
        for run in runs {
            let Some(time) = run.time else {
                return false; // unknown
            };
            order.push((time.milliseconds(), side));
        }
    }
    order.sort_unstable();
    order.windows(2).all(|two| two[0].1 != two[1].1)
}

struct Sides<'a> {
    about: String,
    origin: Origin,
    tasks: u32,
    unit: &'a str,
    better: Better,
    sides: [Side; 2],
    basis: Basis,
    minimum_effect: f64,
}

fn compare(given: Sides<'_>) -> Comparison {
    let [before, after] = given.sides;
    let rule = Rule {
        better: given.better,
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
        better: given.better,
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

/// The runs of two systems: `mmap1 on freebsd-96 (2x24x2), 96 processes`.
fn about(point: &Subject) -> String {
    let machine = on_machine(machine(point).as_deref());
    format!("{}{machine}, {}", point.workload, mode_count(point))
}

/// Returns true if two runs may be compared: they may differ in the system only.
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
