//! The steps of all parts, as they are collected.

use crate::order::Mark;
use workloads::replay::{Act, Step};

/// The steps of all parts. A [`Mark`] counts a part's acts without its waits, so that it is known
/// before these are.
#[derive(Debug)]
pub struct Steps {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    steps: Vec<Step>,
    /// The number of steps up to each act, that one included.
    acts: Vec<u32>,
}

impl Steps {
    pub fn of_parts(parts: usize) -> Self {
        Steps {
            parts: vec![Part::default(); parts],
        }
    }

    /// Adds a part; returns its number.
    pub fn add_part(&mut self) -> u32 {
        self.parts.push(Part::default());
        self.parts.len() as u32 - 1
    }

    /// The mark of the last act of `part`; none if there is none yet.
    pub fn last(&self, part: u32) -> Option<Mark> {
        let steps = self.parts[part as usize].acts.len() as u32;
        (steps > 0).then_some(Mark { part, steps })
    }

    /// The mark that the next act of `part` will have.
    pub fn next(&self, part: u32) -> Mark {
        let steps = self.parts[part as usize].acts.len() as u32 + 1;
        Mark { part, steps }
    }

    /// Lets `part` do `act`.
    pub fn push(&mut self, part: u32, act: Act) {
        let part = &mut self.parts[part as usize];
        part.steps.push(step(act));
        part.acts.push(part.steps.len() as u32);
    }

    /// Lets `part` wait for `marks`.
    pub fn wait(&mut self, part: u32, marks: Vec<Mark>) {
        let waits = marks
            .into_iter()
            .map(|Mark { part, steps }| Act::After { part, steps });
        self.parts[part as usize].steps.extend(waits.map(step));
    }

    /// The last step of `part` completes a call.
    pub fn count(&mut self, part: u32) {
        if let Some(step) = self.parts[part as usize].steps.last_mut() {
            step.counts = true;
        }
    }

    /// The steps of each part.
    pub fn finish(mut self) -> Box<[Box<[Step]>]> {
        for at in 0..self.parts.len() {
            for step in 0..self.parts[at].steps.len() {
                let Act::After { part, steps } = self.parts[at].steps[step].act else {
                    continue;
                };
                let other = &mut self.parts[part as usize];
                let steps = other.acts[steps as usize - 1];
                other.steps[steps as usize - 1].is_awaited = true;
                self.parts[at].steps[step].act = Act::After { part, steps };
            }
        }
        let parts = self.parts.into_iter();
        parts.map(|part| part.steps.into_boxed_slice()).collect()
    }
}

fn step(act: Act) -> Step {
    Step {
        act,
        counts: false,
        is_awaited: false,
    }
}
