//! Sequences in which memory is short, and what is asked for fails now and then.

use crate::step::{Call, Scarcity, Step};
use oorandom::Rand64;

/// Steps of a hundred before which something is said to fail.
const FAILURES: u64 = 15;
/// Steps of a hundred before which memory becomes shorter, or less short.
const CHANGES: u64 = 3;
/// Frames that are left at most when memory is short.
const LEFT: u64 = 96;

/// `steps` with things being scarce in between; the same for the same seed.
pub fn scarce(seed: u64, steps: &[Step]) -> Vec<Step> {
    // Another stream than the steps came from.
    let mut random = Rand64::new(!u128::from(seed));
    let mut below = |bound: u64| random.rand_range(0..bound);
    let mut all = Vec::new();
    for (index, &step) in steps.iter().enumerate() {
        let process = step.process;
        let mut say = |scarcity| {
            let call = Call::Scarce(scarcity);
            all.push(Step { process, call });
        };
        if index == 0 || below(100) < CHANGES {
            say(Scarcity::Left(below(LEFT)));
        }
        if below(100) < FAILURES {
            let few = 1 + below(4);
            say(match below(8) {
                0..5 => Scarcity::Frame(few),
                5 => Scarcity::File(few),
                _ => Scarcity::Swap(few),
            });
        }
        all.push(step);
    }
    all
}
