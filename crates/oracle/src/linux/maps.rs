//! `/proc/PID/maps`, restricted to a range.

use super::files;
use crate::address::{Address, PAGE};
use crate::outcome::Region;
use crate::step::Prot;
use std::ops::Range;

/// A line of `/proc/PID/maps`.
struct Line<'a> {
    range: Range<u64>,
    rights: &'a str,
    offset: u64,
    path: &'a str,
}

/// The regions in `range`, whose first address the sequence calls `start`. Equal neighbours are
/// merged.
pub fn regions(text: &str, range: Range<u64>, start: Address) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    for line in text.lines().filter_map(parse) {
        let from = line.range.start.max(range.start);
        let to = line.range.end.min(range.end);
        if from >= to {
            continue;
        }
        let offset = line.offset + (from - line.range.start);
        let next = Region {
            start: start.plus(from - range.start),
            pages: (to - from) / PAGE,
            prot: prot(line.rights),
            shared: line.rights.ends_with('s'),
            file: files::named(line.path).map(|file| (file, offset / PAGE)),
        };
        let last = regions.last_mut();
        if !last.is_some_and(|last| last.absorb(&next)) {
            regions.push(next);
        }
    }
    regions
}

fn parse(line: &str) -> Option<Line<'_>> {
    let mut words = line.splitn(6, ' ');
    let (from, to) = words.next()?.split_once('-')?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let rights = words.next()?;
    let offset = hex(words.next()?)?;
    // Then follow device, inode and, after spaces, the path.
    let path = words.nth(2).unwrap_or_default().trim_start();
    Some(Line {
        range: hex(from)?..hex(to)?,
        rights,
        offset,
        path,
    })
}

fn prot(rights: &str) -> Prot {
    Prot::new(
        rights.contains('r'),
        rights.contains('w'),
        rights.contains('x'),
    )
}

/// Returns true if nothing is mapped in `range`.
pub fn is_free(text: &str, range: Range<u64>) -> bool {
    let mut lines = text.lines().filter_map(parse);
    lines.all(|line| line.range.end <= range.start || line.range.start >= range.end)
}

/// The ranges mapped in `text` but not in `keeper`, without stacks and `heap`.
pub fn foreign(text: &str, keeper: &str, heap: &Range<u64>) -> Vec<Range<u64>> {
    let kept: Vec<_> = keeper.lines().filter_map(parse).collect();
    let kept = kept.iter().map(|line| &line.range).chain([heap]);
    let lines = text.lines().filter_map(parse);
    let lines = lines.filter(|line| line.path != "[stack]");
    let mut foreign: Vec<_> = lines.map(|line| line.range).collect();
    for kept in kept {
        let cut = |one: Range<u64>| {
            let (below, above) = (one.end.min(kept.start), one.start.max(kept.end));
            [one.start..below, above..one.end]
        };
        foreign = foreign.into_iter().flat_map(cut).collect();
        foreign.retain(|one| one.start < one.end);
    }
    foreign
}
