//! Compares systems step by step, and shortens the sequences in which they differ.
//!
//! The model performs each step first: it gives the answer that every system must give, or says
//! that the step is undefined; then no system performs it.

mod refused;
mod shrink;
mod simpler;

pub use shrink::shrink;

use crate::generate::{scarce, sequence};
use crate::model::Model;
use crate::outcome::Outcome;
use crate::step::Step;
use crate::system::{Broken, Halfway, System};
use std::fmt;

/// A difference between systems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The sequence, up to the step in which they differ.
    pub steps: Vec<Step>,
    /// Every system's answer to the last step, by name; the model's comes first.
    pub outcomes: Vec<(String, Outcome)>,
}

impl Divergence {
    /// Returns true if a system did not finish the last step in time.
    pub fn hangs(&self) -> bool {
        let mut outcomes = self.outcomes.iter();
        outcomes.any(|(_, outcome)| *outcome == Outcome::Endless)
    }
}

/// The result of a sequence without a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Steps that were performed and compared.
    pub compared: u64,
    /// Steps that are undefined, or that some system does not support.
    pub left_out: u64,
    /// Compared steps that were refused or done in part.
    pub refused: u64,
}

/// A model that all of `systems` can be compared with.
pub fn model_for(systems: &[&mut dyn System]) -> Model {
    let mut ways = systems.iter().map(|system| system.halfway());
    let first = ways.next().unwrap_or(Halfway::Kept);
    Model::new(ways.all(|way| way == first).then_some(first))
}

/// The sequence of this seed, of about `steps` steps, that all of `systems` support.
pub fn sequence_for(seed: u64, steps: usize, systems: &[&mut dyn System]) -> Vec<Step> {
    let known = |step: &Step| systems.iter().all(|system| system.supports(step));
    let steps = sequence(seed, steps, model_for(systems), &known);
    if systems.iter().any(|system| system.may_refuse()) {
        scarce(seed, &steps)
    } else {
        steps
    }
}

/// Plays a sequence on all systems.
///
/// # Errors
/// A system cannot be used any more.
pub fn play(
    steps: &[Step],
    systems: &mut [&mut dyn System],
) -> Result<Result<Played, Divergence>, Broken> {
    let mut model = model_for(systems);
    for system in systems.iter_mut() {
        system.reset()?;
    }
    let may_refuse = systems.iter().any(|system| system.may_refuse());
    let mut played = Played::default();
    for (index, step) in steps.iter().enumerate() {
        let known = systems.iter().all(|system| system.supports(step));
        let before = may_refuse.then(|| model.clone());
        let judged = if known { model.judge(step).ok() } else { None };
        let Some(expected) = judged else {
            played.left_out += 1;
            continue;
        };
        played.compared += 1;
        let mut outcomes = vec![("model".to_owned(), expected)];
        for system in systems.iter_mut() {
            outcomes.push((system.name().to_owned(), system.perform(step)?));
        }
        let expected = &outcomes[0].1;
        if outcomes.iter().all(|(_, outcome)| outcome.agrees(expected)) {
            continue;
        }
        let refused = before.and_then(|before| refused::instead(before, step, &outcomes[1..]));
        let Some(instead) = refused else {
            return Ok(Err(Divergence {
                steps: steps[..=index].to_vec(),
                outcomes,
            }));
        };
        model = instead;
        played.refused += 1;
    }
    for system in systems.iter_mut() {
        if let Some(wrong) = system.finish()? {
            let name = system.name().to_owned();
            return Ok(Err(Divergence {
                steps: steps.to_vec(),
                outcomes: vec![(name, Outcome::Crashed(wrong))],
            }));
        }
    }
    Ok(Ok(played))
}

/// The sequence as text that can be replayed, then every system's answer.
impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::print(&self.steps))?;
        let mut outcomes = self.outcomes.iter();
        outcomes.try_for_each(|(name, outcome)| writeln!(f, "# {name}: {outcome}"))
    }
}
