//! Shortening a sequence.
//!
//! First steps are dropped, in runs of half the sequence, then of a quarter, and so on (delta
//! debugging: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002);
//! then parents take over what their children do; then each step is made simpler; all of this
//! repeats until nothing helps.

use super::simpler::simpler;
use super::{Divergence, play};
use crate::step::{Call, ProcessId, Step};
use crate::system::{Broken, System};

/// The number of trials after which a sequence counts as short enough.
const TRIALS: usize = 3000;

/// A shorter sequence of simpler steps in which the systems still differ, not necessarily for the
/// same reason. A sequence that hangs stays as it is: each trial would take as long.
///
/// # Errors
/// A system cannot be used any more.
pub fn shrink(found: Divergence, systems: &mut [&mut dyn System]) -> Result<Divergence, Broken> {
    if found.hangs() {
        return Ok(found);
    }
    let mut search = Search {
        best: found,
        systems,
        trials: TRIALS,
    };
    loop {
        let dropped = search.drop_steps()?;
        let merged = search.merge_processes()?;
        let simplified = search.simplify()?;
        if !(dropped || merged || simplified) || search.trials == 0 {
            return Ok(search.best);
        }
    }
}

struct Search<'a, 'b> {
    best: Divergence,
    systems: &'a mut [&'b mut dyn System],
    trials: usize,
}

impl Search<'_, '_> {
    /// Returns true if the systems also differ in `steps`; if so, keeps these steps as the best.
    fn works(&mut self, steps: &[Step]) -> Result<bool, Broken> {
        if self.trials == 0 {
            return Ok(false);
        }
        self.trials -= 1;
        let result = play(steps, self.systems)?;
        Ok(result.map_err(|found| self.best = found).is_err())
    }

    fn drop_steps(&mut self) -> Result<bool, Broken> {
        let before = self.best.steps.len();
        let mut run = before.div_ceil(2);
        while run > 0 {
            // From the back, because later steps depend on earlier ones.
            let mut end = self.best.steps.len();
            while end > 0 {
                let start = end.saturating_sub(run);
                let mut steps = self.best.steps.clone();
                steps.drain(start..end.min(steps.len()));
                self.works(&steps)?;
                end = start.min(self.best.steps.len());
            }
            run /= 2;
        }
        Ok(self.best.steps.len() < before)
    }

    /// Removes forks; the parents perform their children's steps.
    fn merge_processes(&mut self) -> Result<bool, Broken> {
        let mut helped = false;
        let mut index = 0;
        while let Some(step) = self.best.steps.get(index).copied() {
            let merged = match step.call {
                Call::Fork(child) => {
                    let steps = merged(&self.best.steps, index, step.process, child);
                    self.works(&steps)?
                }
                _ => false,
            };
            helped |= merged;
            index += usize::from(!merged);
        }
        Ok(helped)
    }

    fn simplify(&mut self) -> Result<bool, Broken> {
        let mut helped = false;
        let mut index = 0;
        while let Some(step) = self.best.steps.get(index).copied() {
            let mut better = false;
            for candidate in simpler(&step) {
                let mut steps = self.best.steps.clone();
                steps[index] = candidate;
                better = self.works(&steps)?;
                if better {
                    break;
                }
            }
            helped |= better;
            // A step that became simpler may become still simpler.
            index += usize::from(!better);
        }
        Ok(helped)
    }
}

/// The steps without the fork at `index`; `parent` performs the steps of `child`, up to its exit.
fn merged(steps: &[Step], index: usize, parent: ProcessId, child: ProcessId) -> Vec<Step> {
    let (before, after) = (&steps[..index], &steps[index + 1..]);
    let mut lives = true;
    let after = after.iter().filter_map(|step| match step {
        Step { process, call } if lives && *process == child => {
            lives = *call != Call::Exit;
            lives.then_some(Step {
                process: parent,
                call: *call,
            })
        }
        step => Some(*step),
    });
    before.iter().copied().chain(after).collect()
}
