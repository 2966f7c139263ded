//! The functions that took the most time: a flame graph as a table.

use profile::Stacks;
use std::collections::{BTreeMap, BTreeSet};

/// A function and its shares of all task time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    pub name: String,
    /// Its own share.
    pub own: f64,
    /// Its share including callees.
    pub total: f64,
}

/// The `most` functions that took the longest themselves, for tasks that had `task_seconds`
/// together.
pub fn functions(stacks: &Stacks, task_seconds: f64, most: usize) -> Vec<Function> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (stack, seconds) in stacks.iter() {
        let frames = || stack.split(';').map(|one| one.trim_end_matches("_[k]"));
        // A recursive function is on the stack twice but took its time once.
        let unique: BTreeSet<&str> = frames().collect();
        for function in unique {
            sums.entry(function).or_default().1 += seconds;
        }
        if let Some(leaf) = frames().next_back() {
            sums.entry(leaf).or_default().0 += seconds;
        }
    }
    sums.retain(|_, (own, _)| *own > 0.0);
    let function = |(name, (own, total)): (&str, (f64, f64))| Function {
        name: name.to_owned(),
        own: own / task_seconds,
        total: total / task_seconds,
    };
    let mut all: Vec<Function> = sums.into_iter().map(function).collect();
    let order = |one: &Function| (one.own, one.total);
    all.sort_by(|a, b| {
        let (a, b) = (order(a), order(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::functions;
    use profile::Stacks;

    #[test]
    fn recursion_counts_once() {
        let mut stacks = Stacks::default();
        stacks.add(["main", "f", "f"], 2.0);
        stacks.add(["main", "g_[k]"], 1.0);
        let found = functions(&stacks, 4.0, 2);
        let found: Vec<_> = found
            .iter()
            .map(|f| (f.name.as_str(), f.own, f.total))
            .collect();
        assert_eq!(found, [("f", 0.5, 0.5), ("g", 0.25, 0.25)]);
    }
}
