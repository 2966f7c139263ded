//! Which pairs of operations commute, and why.

use super::operation::{Dialogue, Operation, Placement};

/// What the two CPUs of a pair share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// An address space each.
    Processes,
    /// Two regions of one address space.
    Threads,
    /// An address space each, and the same pages of a file in both.
    Page,
    /// No memory: the operations are those of tasks that sleep.
    Tasks,
}

impl Sharing {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Sharing::Processes => "two processes",
            Sharing::Threads => "two threads",
            Sharing::Page => "two processes on one page",
            Sharing::Tasks => "tasks of two sockets",
        }
    }
}

/// Pairs that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Operations on memory without a common page.
    Apart,
    /// Operations on the same pages of a file.
    OnePage,
    /// Operations of tasks that sleep.
    Tasks,
}

/// Two operations. Each is performed by a CPU of its own, or by two CPUs of a socket of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The operation that is performed first.
    pub first: Operation,
    /// The operation that is performed second.
    pub second: Operation,
    /// What the CPUs share.
    pub sharing: Sharing,
    /// The placement of regions.
    pub placement: Placement,
}

/// A rule that decides for a kind of pairs if they commute.
struct Rule {
    holds: fn(&Pair) -> bool,
    commutes: bool,
    why: &'static str,
}

/// The rules; the first that holds decides.
const RULES: &[Rule] = &[
    Rule {
        holds: |pair| {
            pair.is_of_one_page() && pair.both([Operation::WriteFile, Operation::CopyFile])
        },
        commutes: false,
        why: "a copy contains the writes before it: it tells the order",
    },
    Rule {
        holds: Pair::is_of_one_page,
        commutes: true,
        why: "each changes its own process, or a word of the page that is its own",
    },
    Rule {
        holds: |pair| pair.sharing == Sharing::Tasks,
        commutes: true,
        why: "the tasks, their pipes and their futexes are different ones",
    },
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
    /// All pairs, in both orders: those that share no page, those that do, and those of tasks. Two
    /// threads cannot be paired if an operation concerns the whole process.
    pub fn all() -> Vec<Pair> {
        let mut pairs = Pair::apart();
        pairs.extend(Pair::each_two(&Operation::OF_ONE_PAGE, Sharing::Page));
        pairs.extend(Pair::each_two(&Operation::OF_TASKS, Sharing::Tasks));
        pairs
    }

    fn each_two(operations: &[Operation], sharing: Sharing) -> impl Iterator<Item = Pair> {
        let pair = move |first, second| Pair {
            first,
            second,
            sharing,
            placement: Placement::Allocated,
        };
        let with_all = move |&first| operations.iter().map(move |&second| pair(first, second));
        operations.iter().flat_map(with_all)
    }

    fn apart() -> Vec<Pair> {
        let mut pairs = Vec::new();
        for sharing in [Sharing::Processes, Sharing::Threads] {
            for placement in [Placement::Allocated, Placement::Fixed] {
                for first in Operation::APART {
                    for second in Operation::APART {
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

    /// Returns true if both operations use, or have mapped, the same pages.
    pub fn is_of_one_page(&self) -> bool {
        self.sharing == Sharing::Page
    }

    /// The group with which the pair is counted.
    pub fn group(&self) -> Group {
        match self.sharing {
            Sharing::Processes | Sharing::Threads => Group::Apart,
            Sharing::Page => Group::OnePage,
            Sharing::Tasks => Group::Tasks,
        }
    }

    /// The two operations, if they are of tasks.
    pub(super) fn dialogues(&self) -> Option<[Dialogue; 2]> {
        match (self.first, self.second) {
            (Operation::Tasks(first), Operation::Tasks(second)) => Some([first, second]),
            _ => None,
        }
    }

    /// Returns true if the pair consists of these two, in either order.
    fn both(&self, [one, other]: [Operation; 2]) -> bool {
        let pair = [self.first, self.second];
        pair == [one, other] || pair == [other, one]
    }

    /// Returns true if the two operations commute.
    pub fn commutes(&self) -> bool {
        self.rule().commutes
    }

    /// The reason why they commute or do not.
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
    fn all_but_a_few_pairs_commute() {
        let pairs = Pair::all();
        assert_eq!(pairs.len(), 2 * (25 * 25 + 22 * 22) + 10 * 10 + 4 * 4);
        let not: Vec<_> = pairs.iter().filter(|pair| !pair.commutes()).collect();
        let (page, apart): (Vec<&Pair>, Vec<&Pair>) =
            not.into_iter().partition(|pair| pair.is_of_one_page());
        assert_eq!(apart.len(), 2, "two breaks of one space, in each placement");
        assert!(apart.iter().all(|pair| pair.first == Operation::Brk
            && pair.second == Operation::Brk
            && pair.sharing == Sharing::Threads));
        assert_eq!(page.len(), 2, "a write and a copy, in both orders");
    }
}
