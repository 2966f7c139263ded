//! When stacks were seen.

use super::{Recording, seconds};
use crate::account::Doing;
use profile::{IDLE, Moments, PREEMPTED, Stacks};

impl Recording {
    /// The busy stacks and the times off CPU in slices of time. Spinning within a traced wait is
    /// busy time here, and sleep that began before the recording is left out.
    pub fn moments(&self) -> Moments {
        let timeline = &self.seen.totals.timeline;
        let (mut busy, mut waits) = (Vec::new(), Vec::new());
        let weight = self.weight();
        for (&doing, slices) in &timeline.slices {
            let (to, root, stack) = match doing {
                Doing::Sampled(stack) => (&mut busy, None, stack),
                Doing::Asleep(stack) => {
                    let root = self.off[&stack].is_idle().then_some(IDLE);
                    (&mut waits, root, stack)
                }
                Doing::Queued(stack) => (&mut waits, Some(PREEMPTED), stack),
                Doing::Waiting(..) => continue,
            };
            let unit = match doing {
                Doing::Sampled(_) => weight,
                _ => seconds(1),
            };
            to.resize(to.len().max(slices.len()), Stacks::default());
            for (to, &slice) in to.iter_mut().zip(slices).filter(|(_, slice)| **slice > 0) {
                self.add(to, root, stack, slice as f64 * unit);
            }
        }
        Moments {
            slice: seconds(timeline.width),
            busy,
            waits,
        }
    }
}
