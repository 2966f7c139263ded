//! Two profiles side by side: which locks cost less, and where the waiting went.

use crate::{Hidden, Kind, Lock, Profile};
use serde::Serialize;
use stats::record::Subject;
use std::collections::BTreeMap;

/// A smaller change, as a share of the tasks' time, counts as none.
const MATTERS: f64 = 0.02;

/// A lock at one caller, before and after, as shares of the tasks' time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The lock.
    pub name: String,
    /// The lock's kind.
    pub kind: Kind,
    /// The function that takes it.
    pub caller: String,
    /// Its share of the tasks' time before.
    pub before: f64,
    /// Its share after.
    pub after: f64,
    /// Waits per second of task time before.
    pub contentions_before: f64,
    /// Waits per second of task time after.
    pub contentions_after: f64,
}

impl Change {
    /// The growth of its share.
    pub fn more(&self) -> f64 {
        self.after - self.before
    }
}

/// The differences between two profiles' subjects, one phrase each, `before` first; a change
/// between such profiles need not be a change of the measured system. Empty if nothing differs, or
/// only one thing that a comparison is about: the number of tasks, or the build.
pub fn unlike(before: &Subject, after: &Subject) -> Vec<String> {
    let machine = |one: &Subject| {
        let shape = one.topology.as_deref().unwrap_or_default();
        one.profile.as_ref().map(|name| format!("{name} {shape}"))
    };
    let count = |one: &Subject| one.mode.count(one.tasks as usize);
    let against = |name: &str, before: &str, after: &str| {
        (before != after).then(|| format!("{name}{before} against {after}"))
    };
    let place = |one: &Subject| machine(one).unwrap_or_else(|| one.on.clone());
    let build = |one: &Subject| one.vm.clone().unwrap_or_else(|| one.on.clone());
    let grave = [
        against("", &before.workload, &after.workload),
        against("", &place(before), &place(after)),
        (before.mode != after.mode).then(|| format!("{} against {}", count(before), count(after))),
    ];
    let slight = [
        (before.mode == after.mode && before.tasks != after.tasks)
            .then(|| format!("{} against {}", count(before), count(after))),
        (before.on == after.on)
            .then(|| against("", &build(before), &build(after)))
            .flatten(),
    ];
    let is_grave = grave.iter().any(Option::is_some);
    let is_slight = slight.iter().flatten().count() > 1;
    let all = grave.into_iter().chain(slight).flatten();
    if is_grave || is_slight {
        all.collect()
    } else {
        Vec::new()
    }
}

/// Two profiles, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// All locks of both, the largest change first.
    pub changes: Vec<Change>,
    /// One sentence: the gain, and where the contention moved.
    pub sentence: String,
}

impl Difference {
    /// Compares lock by lock and caller by caller.
    pub fn of(before: &Profile, after: &Profile) -> Self {
        let mut changes: BTreeMap<(&str, Kind, &str), Change> = BTreeMap::new();
        for lock in &before.locks {
            let change = entry(&mut changes, lock);
            change.before += lock.share;
            change.contentions_before += lock.contentions as f64 / before.task_seconds();
        }
        for lock in &after.locks {
            let change = entry(&mut changes, lock);
            change.after += lock.share;
            change.contentions_after += lock.contentions as f64 / after.task_seconds();
        }
        let mut changes: Vec<Change> = changes.into_values().collect();
        changes.sort_by(|a, b| b.more().abs().total_cmp(&a.more().abs()));
        let mut sentence = sentence(&changes, rates(before.rate, after.rate));
        let hidden = Hidden {
            kernel: before.hidden.kernel || after.hidden.kernel,
            waits: before.hidden.waits || after.hidden.waits,
        };
        if let Some(words) = hidden.words() {
            sentence += &format!("; {words} could not be seen");
        }
        Difference { changes, sentence }
    }
}

fn entry<'a, 'b>(
    changes: &'b mut BTreeMap<(&'a str, Kind, &'a str), Change>,
    lock: &'a Lock,
) -> &'b mut Change {
    let Lock {
        name, kind, caller, ..
    } = lock;
    changes
        .entry((name, *kind, caller))
        .or_insert_with(|| Change {
            name: name.clone(),
            kind: *kind,
            caller: caller.clone(),
            before: 0.0,
            after: 0.0,
            contentions_before: 0.0,
            contentions_after: 0.0,
        })
}

/// Each lock's share before and after. A task that waits for a lock also waits for its cache line:
/// the larger of the two shares stands for both.
fn by_name(changes: &[Change]) -> BTreeMap<&str, (f64, f64)> {
    let mut sums: BTreeMap<(&str, bool), (f64, f64)> = BTreeMap::new();
    for change in changes {
        let is_line = change.kind == Kind::Line;
        let sum = sums.entry((&change.name, is_line)).or_default();
        sum.0 += change.before;
        sum.1 += change.after;
    }
    let mut locks: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for ((name, _), sum) in sums {
        let most = locks.entry(name).or_default();
        if sum.0 + sum.1 > most.0 + most.1 {
            *most = sum;
        }
    }
    locks
}

/// The change of the rate, in words; none between profiles without a rate.
fn rates(before: Option<f64>, after: Option<f64>) -> Option<String> {
    let known = |(before, after): (f64, f64)| (before > 0.0).then(|| after / before);
    match (before, after) {
        (None, None) => None,
        (Some(_), None) => Some("no rate after".to_owned()),
        _ => Some(match before.zip(after).and_then(known) {
            Some(times) => format!("{times:.2} times the rate"),
            None => "no rate before".to_owned(),
        }),
    }
}

/// The rate first, if there is one, and then the shift of the contention.
fn sentence(changes: &[Change], rate: Option<String>) -> String {
    let parts: Vec<String> = rate.into_iter().chain([shift(changes)]).collect();
    parts.join("; ")
}

fn shift(changes: &[Change]) -> String {
    let locks = by_name(changes);
    let describe = |(name, (before, after)): &(&str, (f64, f64))| {
        format!("{name} {:.0} → {:.0} %", 100.0 * before, 100.0 * after)
    };
    let mut less: Vec<_> = locks.iter().map(|(name, sums)| (*name, *sums)).collect();
    less.sort_by(|a, b| (b.1.1 - b.1.0).abs().total_cmp(&(a.1.1 - a.1.0).abs()));
    let (more, less): (Vec<_>, Vec<_>) = less
        .into_iter()
        .filter(|(_, (before, after))| (after - before).abs() >= MATTERS)
        .partition(|(_, (before, after))| after > before);
    let list = |locks: &[_]| {
        locks
            .iter()
            .take(3)
            .map(describe)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (less.is_empty(), more.is_empty()) {
        (true, true) => "no lock's share of task time changed".to_owned(),
        (false, true) => format!("less waiting for {}; no lock took its place", list(&less)),
        (true, false) => format!("more waiting for {}", list(&more)),
        (false, false) => format!(
            "less waiting for {}; the contention shifted to {}",
            list(&less),
            list(&more)
        ),
    }
}
