//! The results of one VM's pairs.

use super::commute::{Group, Pair};
use super::examine::Conflict;
use super::known::{Compared, class, never_met};
use baselines::Preset;
use std::collections::BTreeMap;

/// One pair's result.
pub struct Examined {
    pub pair: Pair,
    /// The lines in which it conflicts.
    pub conflicts: Vec<Conflict>,
}

/// All pairs of one VM.
pub struct Results {
    /// The preset that the VM is built with.
    pub preset: Preset,
    /// The result of each pair.
    pub pairs: Vec<Examined>,
}

impl Results {
    /// Returns true if the pairs that commute have exactly the known conflicts.
    pub fn is_as_known(&self) -> bool {
        let mut all = self.commutative();
        all.all(|one| self.compared(one).is_as_known()) && self.never_met().is_empty()
    }

    /// Compares a result with the known conflicts, which are those of the default VM.
    pub fn compared(&self, result: &Examined) -> Compared {
        if self.preset != Preset::SCALEVM {
            return Compared::default();
        }
        Compared::of(&result.pair, &result.conflicts)
    }

    /// Lines in which some pair is known to conflict, but none does.
    pub fn never_met(&self) -> Vec<&'static str> {
        if self.preset != Preset::SCALEVM {
            return Vec::new();
        }
        let all: Vec<Compared> = self.commutative().map(|one| self.compared(one)).collect();
        never_met(&all)
    }

    /// The pairs that commute.
    pub fn commutative(&self) -> impl Iterator<Item = &Examined> {
        self.pairs.iter().filter(|result| result.pair.commutes())
    }

    /// Pairs of a group that commute, and those of them without a conflict.
    pub fn counts(&self, group: Group) -> (usize, usize) {
        let of = |result: &&Examined| result.pair.group() == group;
        let pairs = || self.commutative().filter(of);
        let free = pairs().filter(|result| result.conflicts.is_empty());
        (pairs().count(), free.count())
    }

    /// The number of pairs that conflict in each kind of line, the most frequent first.
    pub fn lines(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for result in self.commutative() {
            let mut names: Vec<_> = result
                .conflicts
                .iter()
                .map(|one| class(&one.what))
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
}
