//! Values of ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for each of some ranges that do not overlap.
#[derive(Clone, Debug)]
pub struct Ranges<T> {
    /// By start: the end, and the value.
    each: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Ranges {
            each: BTreeMap::new(),
        }
    }
}

impl<T: Clone> Ranges<T> {
    /// Gives `range` this value, whatever its parts had before.
    pub fn set(&mut self, range: Range<u64>, value: T) {
        if range.is_empty() {
            return;
        }
        self.clear(range.clone());
        self.each.insert(range.start, (range.end, value));
    }

    /// Gives the parts of `range` that have no value this one.
    pub fn fill(&mut self, range: Range<u64>, value: &T) {
        let mut at = range.start;
        let mut gaps = Vec::new();
        for (part, _) in self.of(range.clone()) {
            gaps.push(at..part.start);
            at = part.end;
        }
        gaps.push(at..range.end);
        for gap in gaps {
            self.set(gap, value.clone());
        }
    }

    /// Takes the values of `range` away.
    pub fn clear(&mut self, range: Range<u64>) {
        self.split(range.start);
        self.split(range.end);
        while let Some((&start, _)) = self.each.range(range.clone()).next() {
            self.each.remove(&start);
        }
    }

    /// Cuts the range that `at` lies in.
    fn split(&mut self, at: u64) {
        let before = self.each.range_mut(..at).next_back();
        if let Some((_, (end, value))) = before.filter(|(_, (end, _))| *end > at) {
            let (rest, value) = (*end, value.clone());
            *end = at;
            self.each.insert(at, (rest, value));
        }
    }

    /// The parts of `range` that have values.
    pub fn of(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &T)> {
        let first = self.each.range(..=range.start).next_back();
        let from = first.map_or(range.start, |(&start, _)| start);
        let overlapping = self.each.range(from..range.end.max(from));
        overlapping.filter_map(move |(&start, (end, value))| {
            let part = start.max(range.start)..(*end).min(range.end);
            (!part.is_empty()).then_some((part, value))
        })
    }

    /// The values of the ranges that overlap `range`.
    pub fn of_mut(&mut self, range: Range<u64>) -> impl Iterator<Item = &mut T> {
        let first = self.each.range(..=range.start).next_back();
        let from = first.map_or(range.start, |(&start, _)| start);
        let overlapping = self.each.range_mut(from..range.end.max(from));
        overlapping.filter_map(move |(_, (end, value))| (*end > range.start).then_some(value))
    }

    /// The parts of `range` that have values; adjacent ones are one.
    pub fn whole(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for (part, _) in self.of(range) {
            match found.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => found.push(part),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_and_joined() {
        let mut ranges = Ranges::default();
        ranges.set(0..100, 'a');
        ranges.set(40..60, 'b');
        ranges.clear(90..200);
        let found: Vec<_> = ranges
            .of(30..95)
            .map(|(part, &value)| (part, value))
            .collect();
        assert_eq!(found, [(30..40, 'a'), (40..60, 'b'), (60..90, 'a')]);
        assert_eq!(ranges.whole(0..1000).first(), Some(&(0..90)));
        ranges.clear(50..55);
        assert_eq!(ranges.whole(45..1000), [45..50, 55..90]);
        for value in ranges.of_mut(55..61) {
            *value = 'c';
        }
        let found: Vec<_> = ranges.of(0..90).map(|(_, &value)| value).collect();
        assert_eq!(found, ['a', 'b', 'c', 'c']);
        assert!(ranges.of(90..91).next().is_none());
        ranges.fill(45..100, &'d');
        let found: Vec<_> = ranges
            .of(45..100)
            .map(|(part, &value)| (part, value))
            .collect();
        let expected = [
            (45..50, 'b'),
            (50..55, 'd'),
            (55..60, 'c'),
            (60..90, 'c'),
            (90..100, 'd'),
        ];
        assert_eq!(found, expected);
    }
}
