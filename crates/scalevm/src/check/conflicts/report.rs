//! What one VM's pairs have shown, as text or JSON.

use super::commute::Pair;
use super::examine::{Conflict, Use};
use crate::check::sites::Frame;
use baselines::selected::Preset;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One pair's result.
pub struct Result {
    /// The pair.
    pub pair: Pair,
    /// The lines it meets in.
    pub conflicts: Vec<Conflict>,
}

/// All pairs of one VM.
pub struct Report {
    preset: Preset,
    json: bool,
    /// Whether each conflict is shown.
    in_full: bool,
    results: Vec<Result>,
}

impl Report {
    /// An empty report.
    pub fn new(preset: Preset, json: bool, in_full: bool) -> Self {
        Report {
            preset,
            json,
            in_full,
            results: Vec::new(),
        }
    }

    /// Adds a pair.
    pub fn add(&mut self, result: Result) {
        self.results.push(result);
    }

    /// Whether no pair that commutes has a conflict.
    pub fn is_free(&self) -> bool {
        self.commutative().all(|result| result.conflicts.is_empty())
    }

    /// Prints it all.
    pub fn print(&self) {
        match self.json {
            true => self.print_json(),
            false => self.print_text(),
        }
    }

    fn commutative(&self) -> impl Iterator<Item = &Result> {
        self.results.iter().filter(|result| result.pair.commutes())
    }

    /// Pairs that commute, and those of them without a conflict.
    fn counts(&self) -> (usize, usize) {
        let free = self
            .commutative()
            .filter(|result| result.conflicts.is_empty());
        (self.commutative().count(), free.count())
    }

    /// In how many pairs each line is met, the commonest first.
    fn lines(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for result in self.commutative() {
            let mut names: Vec<_> = result
                .conflicts
                .iter()
                .map(|one| one.what.as_str())
                .collect();
            names.sort_unstable();
            names.dedup();
            names
                .into_iter()
                .for_each(|name| *counts.entry(name).or_default() += 1);
        }
        let mut lines: Vec<_> = counts.into_iter().collect();
        lines.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        lines
    }

    fn print_text(&self) {
        let (all, free) = self.counts();
        let percent = 100.0 * free as f64 / all as f64;
        let preset = self.preset.name();
        println!("{preset}: {free} of {all} commutative pairs are conflict-free ({percent:.0} %)");
        for (line, pairs) in self.lines() {
            println!("  {pairs:>4} pairs meet in {line}");
        }
        if self.in_full {
            let failing = self
                .commutative()
                .filter(|result| !result.conflicts.is_empty());
            failing.for_each(print_pair);
            for result in self.results.iter().filter(|result| !result.pair.commutes()) {
                println!(
                    "  not counted: {}: {}",
                    title(&result.pair),
                    result.pair.why()
                );
            }
        }
    }

    fn print_json(&self) {
        for result in &self.results {
            println!("{}", self.pair_json(result));
        }
        let (all, free) = self.counts();
        let line = json!({
            "record": "summary", "vm": self.preset.name(), "commutative": all, "free": free,
            "lines": self.lines().iter().map(|(line, pairs)| json!({"line": line, "pairs": pairs}))
                .collect::<Vec<_>>(),
        });
        println!("{line}");
    }

    fn pair_json(&self, result: &Result) -> Value {
        let Pair {
            first,
            second,
            sharing,
            placement,
        } = result.pair;
        let conflict =
            |conflict: &Conflict| {
                let uses = conflict.uses.iter().map(|used| json!({
                "operation": used.operation.name(), "reads": used.reads, "writes": used.writes,
                "sites": used.sites,
            }));
                json!({"line": conflict.what, "uses": uses.collect::<Vec<_>>()})
            };
        json!({
            "record": "pair", "vm": self.preset.name(), "first": first.name(),
            "second": second.name(), "by": sharing.name(), "regions": placement.name(),
            "commutes": result.pair.commutes(), "why": result.pair.why(),
            "conflicts": result.conflicts.iter().map(conflict).collect::<Vec<_>>(),
        })
    }
}

fn title(pair: &Pair) -> String {
    let Pair {
        first,
        second,
        sharing,
        placement,
    } = pair;
    let (first, second) = (first.name(), second.name());
    format!(
        "{first} and {second}, {}, regions {}",
        sharing.name(),
        placement.name()
    )
}

fn print_pair(result: &Result) {
    println!("  {}:", title(&result.pair));
    for conflict in &result.conflicts {
        println!("    {}", conflict.what);
        conflict.uses.iter().for_each(print_use);
    }
}

fn print_use(used: &Use) {
    let (name, reads, writes) = (used.operation.name(), used.reads, used.writes);
    println!("      {name}: {reads} reads, {writes} writes");
    for Frame { function, place } in &used.sites {
        println!("        {function}  {place}");
    }
}
