//! Which pairs of operations commute, and why.

use super::operation::{Operation, Placement};

/// Whose memory the two CPUs work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// An address space each.
    Processes,
    /// Two regions of one address space.
    Threads,
}

impl Sharing {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Sharing::Processes => "two processes",
            Sharing::Threads => "two threads",
        }
    }
}

/// Two operations, each by a CPU of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Comes first in time.
    pub first: Operation,
    /// Comes second.
    pub second: Operation,
    /// Whose memory.
    pub sharing: Sharing,
    /// Where it lies.
    pub placement: Placement,
}

/// A rule says of a kind of pairs whether they commute.
struct Rule {
    holds: fn(&Pair) -> bool,
    commutes: bool,
    why: &'static str,
}

/// The first that holds decides.
const RULES: &[Rule] = &[
    Rule {
        holds: |pair| pair.sharing == Sharing::Processes,
        commutes: true,
        why: "the processes share nothing but a file, and use different pages of it",
    },
    Rule {
        holds: |pair| pair.first == Operation::Brk && pair.second == Operation::Brk,
        commutes: false,
        why: "both move one break: where it ends tells the order",
    },
    Rule {
        holds: |pair| pair.first == Operation::Brk || pair.second == Operation::Brk,
        commutes: true,
        why: "the heap and the other's region are disjoint",
    },
    Rule {
        holds: |pair| {
            pair.placement == Placement::Allocated
                && (pair.first == Operation::Map || pair.second == Operation::Map)
        },
        commutes: true,
        why: "the regions are disjoint, and map may return any free address",
    },
    Rule {
        holds: |_| true,
        commutes: true,
        why: "the regions are disjoint",
    },
];

impl Pair {
    /// All pairs that there are, in both orders. What is about a whole process leaves its
    /// threads no memory of their own.
    pub fn all() -> Vec<Pair> {
        let mut pairs = Vec::new();
        for sharing in [Sharing::Processes, Sharing::Threads] {
            for placement in [Placement::Allocated, Placement::Fixed] {
                for first in Operation::ALL {
                    for second in Operation::ALL {
                        let whole = first.is_whole() || second.is_whole();
                        if sharing == Sharing::Threads && whole {
                            continue;
                        }
                        pairs.push(Pair {
                            first,
                            second,
                            sharing,
                            placement,
                        });
                    }
                }
            }
        }
        pairs
    }

    /// Whether the order does not matter.
    pub fn commutes(&self) -> bool {
        self.rule().commutes
    }

    /// The reason.
    pub fn why(&self) -> &'static str {
        self.rule().why
    }

    fn rule(&self) -> &'static Rule {
        let rule = RULES.iter().find(|rule| (rule.holds)(self));
        rule.expect("the last rule holds for all")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_two_breaks_of_one_space_commute() {
        let pairs = Pair::all();
        assert_eq!(pairs.len(), 2 * (25 * 25 + 22 * 22));
        let not: Vec<_> = pairs.iter().filter(|pair| !pair.commutes()).collect();
        assert_eq!(not.len(), 2, "one in each placement");
        assert!(not.iter().all(|pair| pair.first == Operation::Brk
            && pair.second == Operation::Brk
            && pair.sharing == Sharing::Threads));
    }
}
