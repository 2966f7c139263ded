//! Makes memory short in a sequence, and lets requests fail now and then.

use crate::step::{Call, Scarcity, Step};
use oorandom::Rand64;

/// The number of steps in a hundred that follow an announced failure.
const FAILURES: u64 = 15;
/// The number of steps in a hundred that follow a change of the number of free frames.
const CHANGES: u64 = 3;
/// Frames that are left at most when memory is short.
const LEFT: u64 = 96;

/// `steps` with scarcity in between; the same for the same seed.
pub fn scarce(seed: u64, steps: &[Step]) -> Vec<Step> {
    // Different random numbers from those that made the steps.
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
