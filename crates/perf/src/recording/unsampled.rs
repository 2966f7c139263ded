//! Times off CPU whose place was not sampled.
//!
//! The switches that were sampled stand for the others of the same threads: each place gets as much
//! of the others' time as it has of the sampled.

use crate::account::{Doing, StackId, Tally, Totals};
use crate::symbols::Named;
use std::collections::HashMap;
use std::mem::take;

/// The names of a process and of a thread.
type Names<'a> = (&'a str, Option<&'a str>);

/// Deals the times out, so that none are left.
pub(super) fn deal(totals: &mut Totals, stacks: &[Named]) {
    for ((nowhere, preempted), unknown) in take(&mut totals.unsampled) {
        let known = match preempted {
            true => &mut totals.preempted,
            false => &mut totals.asleep,
        };
        let names = names(&stacks[nowhere as usize]);
        let like = known.keys().copied();
        let like = like.filter(|&stack| names == self::names(&stacks[stack as usize]));
        let like: Vec<StackId> = like.collect();
        let sum = |of: fn(&Tally) -> u64| like.iter().map(|stack| of(&known[stack])).sum::<u64>();
        let (count, total) = (
            sum(|tally| tally.count + tally.open),
            sum(|tally| tally.total),
        );
        if total == 0 {
            known.entry(nowhere).or_default().add_all(&unknown);
            continue;
        }
        let counts = 1.0 + (unknown.count + unknown.open) as f64 / count.max(1) as f64;
        let times = 1.0 + unknown.total as f64 / total as f64;
        let shares = like
            .iter()
            .map(|&stack| (stack, known[&stack].total as f64 / total as f64));
        let shares: HashMap<StackId, f64> = shares.collect();
        for stack in &like {
            known
                .entry(*stack)
                .and_modify(|tally| tally.scale(counts, times));
        }
        let doing = match preempted {
            true => Doing::Queued,
            false => Doing::Asleep,
        };
        totals.timeline.deal(doing, nowhere, &shares);
        if !preempted {
            let words = totals.words.iter_mut();
            for (_, tally) in words.filter(|((stack, _), _)| shares.contains_key(stack)) {
                tally.scale(counts, times);
            }
        }
    }
}

fn names(stack: &Named) -> Names<'_> {
    (&stack.process, stack.thread.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Span;
    use crate::unwind::Word;

    fn tally(times: &[u64]) -> Tally {
        let mut tally = Tally::default();
        for &time in times {
            tally.add(Span {
                part: time,
                whole: time,
                ended: true,
            });
        }
        tally
    }

    #[test]
    fn what_was_sampled_stands_for_the_rest() {
        let of = |process: &str| Named {
            process: process.to_owned(),
            ..Named::default()
        };
        // Two places of one process and its others, and one process without a sample.
        let stacks = [of("a"), of("a"), of("a"), of("b")];
        let mut totals = Totals::default();
        totals.asleep.insert(0, tally(&[300]));
        totals.asleep.insert(1, tally(&[50, 50]));
        totals.words.insert((0, Word::At(8)), tally(&[300]));
        totals.unsampled.insert((2, false), tally(&[100, 500, 600]));
        totals.unsampled.insert((3, true), tally(&[7]));
        totals.timeline.add(Doing::Asleep(2), 0, 1_200);
        deal(&mut totals, &stacks);
        let figures = |tally: &Tally| (tally.count, tally.total);
        assert_eq!(figures(&totals.asleep[&0]), (2, 1_200));
        assert_eq!(figures(&totals.asleep[&1]), (4, 400));
        assert_eq!(figures(&totals.words[&(0, Word::At(8))]), (2, 1_200));
        assert_eq!(figures(&totals.preempted[&3]), (1, 7));
        let spread = totals.asleep[&1].spread().expect("waits");
        assert_eq!(spread.count, 4);
        let slices = &totals.timeline.slices;
        assert_eq!(slices[&Doing::Asleep(0)], [900]);
        assert_eq!(slices[&Doing::Asleep(1)], [300]);
        assert!(!slices.contains_key(&Doing::Asleep(2)));
    }
}
