//! Which steps must wait for which.
//!
//! Resource-oriented ordering: steps that change the same memory of a process keep the recorded
//! order, and so do a change and the touches before and after it. Touches are free among
//! themselves. (Weiss et al., "ROOT: Replaying Multithreaded Traces with Resource-Oriented
//! Ordering", SOSP 2013.)

use crate::ranges::Ranges;
use std::collections::HashMap;
use std::ops::Range;

/// The end of a step: the part that takes it, and the number of the part's steps up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub part: u32,
    pub steps: u32,
}

/// A mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    pub process: u32,
    pub mapping: u32,
}

/// The last users of a range.
#[derive(Clone, Debug, Default)]
struct Users {
    /// The last change.
    change: Option<Mark>,
    /// The last touch of each part since, and the hull of its touches.
    touches: Vec<(Mark, Range<u64>)>,
}

/// The order of steps so far.
#[derive(Debug, Default)]
pub struct Order {
    users: HashMap<Mapping, Ranges<Users>>,
    /// By part, then by another: the steps of the other that it has waited for.
    waited: HashMap<(u32, u32), u32>,
}

impl Order {
    /// `mark` changes `range` of a mapping; returns what it must wait for.
    pub fn change(&mut self, of: Mapping, range: Range<u64>, mark: Mark) -> Vec<Mark> {
        let ranges = self.users.entry(of).or_default();
        let mut before = Vec::new();
        for (part, users) in ranges.of(range.clone()) {
            before.extend(users.change);
            let overlaps =
                |touched: &Range<u64>| touched.start < part.end && part.start < touched.end;
            let touches = users
                .touches
                .iter()
                .filter(|(_, touched)| overlaps(touched));
            before.extend(touches.map(|(mark, _)| *mark));
        }
        let change = Some(mark);
        let users = Users {
            change,
            touches: Vec::new(),
        };
        ranges.set(range, users);
        self.new_for(mark.part, before)
    }

    /// `mark` touches `range` of a mapping; returns what it must wait for.
    pub fn touch(&mut self, of: Mapping, range: Range<u64>, mark: Mark) -> Vec<Mark> {
        let mut before = Vec::new();
        let ranges = self.users.entry(of).or_default();
        ranges.fill(range.clone(), &Users::default());
        for users in ranges.of_mut(range.clone()) {
            before.extend(users.change);
            match users
                .touches
                .iter_mut()
                .find(|(last, _)| last.part == mark.part)
            {
                Some((last, hull)) => {
                    *last = mark;
                    *hull = hull.start.min(range.start)..hull.end.max(range.end);
                }
                None => users.touches.push((mark, range.clone())),
            }
        }
        self.new_for(mark.part, before)
    }

    /// `part` waits for `mark`; returns true if that is new.
    pub fn wait(&mut self, part: u32, mark: Mark) -> bool {
        !self.new_for(part, vec![mark]).is_empty()
    }

    /// Those of `marks` for which `part` has not waited yet.
    fn new_for(&mut self, part: u32, marks: Vec<Mark>) -> Vec<Mark> {
        let mut new: Vec<Mark> = Vec::new();
        for mark in marks {
            let waited = self.waited.entry((part, mark.part)).or_default();
            if mark.part == part || *waited >= mark.steps {
                continue;
            }
            *waited = mark.steps;
            new.retain(|other| other.part != mark.part);
            new.push(mark);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mark(part: u32, steps: u32) -> Mark {
        Mark { part, steps }
    }

    #[test]
    fn changes_wait_for_what_was_there_and_touches_for_changes() {
        let mut order = Order::default();
        let mapping = |process| Mapping {
            process,
            mapping: 7,
        };
        let key = mapping(0);
        assert!(order.change(key, 0..100, mark(0, 1)).is_empty());
        assert_eq!(order.touch(key, 10..20, mark(1, 1)), [mark(0, 1)]);
        assert_eq!(order.touch(key, 20..30, mark(1, 2)), [], "it has waited");
        assert_eq!(order.touch(key, 10..30, mark(2, 5)), [mark(0, 1)]);
        assert_eq!(
            order.change(key, 40..50, mark(0, 2)),
            [],
            "nobody was there"
        );
        assert_eq!(
            order.change(key, 15..16, mark(0, 3)),
            [mark(1, 2), mark(2, 5)]
        );
        assert_eq!(order.touch(key, 60..61, mark(1, 3)), []);
        assert_eq!(order.touch(key, 40..61, mark(1, 4)), [mark(0, 2)]);
        assert_eq!(
            order.touch(mapping(1), 40..61, mark(4, 4)),
            [],
            "another process"
        );
    }
}
