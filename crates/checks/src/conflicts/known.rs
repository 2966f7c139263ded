//! The conflicts that pairs of the default VM are known to have although they commute.
//!
//! A pair that conflicts and is not listed is a failure, and so is a listed one without a conflict;
//! its entry here must then be removed.

use super::commute::Pair;
use super::examine::Conflict;
use super::operation::Operation::{self, *};
use std::collections::BTreeSet;

/// Operations on one page of a file: each of the first conflicts with each of the second.
struct Known {
    /// The conflicting lines, by label: at least one of these, and no other.
    lines: &'static [&'static str],
    /// The operations of the first CPU, which has brought the file's pages into memory.
    first: &'static [Operation],
    /// The operations of the second CPU.
    second: &'static [Operation],
}

/// The known conflicts of the default VM. A cache line has the descriptors of two frames: a CPU
/// that has brought a page of a file into memory may take the neighbouring frame for itself, and a
/// CPU that unmaps the page checks if it is marked as used. An object counts its handles in one
/// word.
const KNOWN: &[Known] = &[
    Known {
        lines: &["Page"],
        first: &[CopyFile],
        second: &[UnmapFile, Exec, Exit],
    },
    Known {
        lines: &["Object.counts"],
        first: &[Open, Close],
        second: &[Open, Close],
    },
];

impl Known {
    fn is_of(&self, pair: &Pair) -> bool {
        let is_listed = self.first.contains(&pair.first) && self.second.contains(&pair.second);
        pair.is_of_one_page() && is_listed
    }
}

/// A pair's conflicts, compared with the known ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Lines that are known.
    pub known: BTreeSet<String>,
    /// Lines that are not.
    pub unknown: BTreeSet<String>,
    /// Lines that are known, but in which the pair does not conflict.
    pub gone: BTreeSet<String>,
}

impl Compared {
    /// Returns true if the conflicts are exactly those that are listed.
    pub fn is_as_known(&self) -> bool {
        self.unknown.is_empty() && self.gone.is_empty()
    }

    /// Compares the conflicts of `pair`, which commutes, with the known ones.
    pub fn of(pair: &Pair, conflicts: &[Conflict]) -> Self {
        Self::with(pair, conflicts, KNOWN)
    }

    fn with(pair: &Pair, conflicts: &[Conflict], known: &[Known]) -> Self {
        let met = conflicts.iter().map(|one| class(&one.what).to_owned());
        let met: BTreeSet<String> = met.collect();
        let listed = known.iter().filter(|known| known.is_of(pair));
        let listed = listed.flat_map(|known| known.lines);
        let listed: BTreeSet<String> = listed.map(|&line| line.to_owned()).collect();
        let known: BTreeSet<String> = met.intersection(&listed).cloned().collect();
        let gone = if known.is_empty() {
            listed.clone()
        } else {
            BTreeSet::new()
        };
        Compared {
            unknown: met.difference(&listed).cloned().collect(),
            known,
            gone,
        }
    }
}

/// The lines of the list in which none of these pairs conflicts: their entry is longer than needed.
pub fn never_met<'a>(all: impl IntoIterator<Item = &'a Compared>) -> Vec<&'static str> {
    let met: BTreeSet<&str> = all
        .into_iter()
        .flat_map(|one| one.known.iter().map(String::as_str))
        .collect();
    let lines = KNOWN.iter().flat_map(|known| known.lines).copied();
    lines.filter(|line| !met.contains(line)).collect()
}

/// A line's label without the place inside the labelled object.
pub fn class(what: &str) -> &str {
    what.split(" + ").next().unwrap_or(what)
}

#[cfg(test)]
mod tests {
    use super::super::commute::Sharing;
    use super::super::examine::Use;
    use super::super::operation::Placement;
    use super::*;

    #[test]
    fn what_is_not_listed_and_what_is_gone_is_told() {
        let pair = |first, second, sharing| Pair {
            first,
            second,
            sharing,
            placement: Placement::Allocated,
        };
        let meets = |what: &str| {
            let used = |operation| Use {
                operation,
                reads: 1,
                writes: 1,
                sites: Vec::new(),
            };
            let what = what.to_owned();
            let uses = [used(ReadFile), used(MapFile)];
            vec![Conflict { what, uses }]
        };
        let known = [Known {
            lines: &["Page", "PV table"],
            first: &[UnmapFile, ReadFile],
            second: &[ReadFile],
        }];
        let compare = |pair: &Pair, met: &[Conflict]| Compared::with(pair, met, &known);
        let listed = pair(UnmapFile, ReadFile, Sharing::Page);
        assert!(compare(&listed, &meets("Page + 128")).is_as_known());
        let gone = compare(&listed, &[]);
        assert_eq!(Vec::from_iter(gone.gone), ["PV table", "Page"]);
        let other = compare(&listed, &meets("Object"));
        assert_eq!(Vec::from_iter(other.unknown), ["Object"]);
        // One of them is not listed, or not in this order, or they share no page.
        for pair in [
            pair(UnmapFile, MapFile, Sharing::Page),
            pair(ReadFile, UnmapFile, Sharing::Page),
            pair(UnmapFile, ReadFile, Sharing::Processes),
        ] {
            assert!(compare(&pair, &[]).is_as_known());
            assert!(!compare(&pair, &meets("Page")).is_as_known());
        }
        // An entry without a conflict is superfluous.
        let met = compare(&listed, &meets("Page"));
        assert_eq!(never_met([&met]), ["Object.counts"]);
    }
}
