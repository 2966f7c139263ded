//! Planted bugs that appear when memory is short.
//!
//! Each system is the model with one bug. It refuses the step that follows an announced failure.

use crate::address::{Address, PAGE, Range};
use crate::model::Model;
use crate::outcome::Outcome;
use crate::step::{Advice, Call, Scarcity, Step};
use crate::system::{Broken, Halfway, System};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neglect {
    /// A refused call takes effect.
    RefusedIsDone,
    /// A refused store loses the page that it was for.
    RefusedLosesPage,
    /// A page that cannot be written to the swap space is lost.
    SwapLoses,
}

impl Neglect {
    /// All bugs.
    pub const ALL: [Neglect; 3] = [
        Neglect::RefusedIsDone,
        Neglect::RefusedLosesPage,
        Neglect::SwapLoses,
    ];

    /// The bug's name.
    pub fn name(self) -> &'static str {
        match self {
            Neglect::RefusedIsDone => "refused-is-done",
            Neglect::RefusedLosesPage => "refused-loses-page",
            Neglect::SwapLoses => "swap-loses",
        }
    }
}

/// The model with a bug.
pub struct Careless {
    neglect: Neglect,
    model: Model,
    /// The failure due in the next step.
    scarce: Option<Scarcity>,
}

impl Careless {
    /// The model with `neglect`.
    pub fn new(neglect: Neglect) -> Self {
        Careless {
            neglect,
            model: Model::new(Some(Halfway::Undone)),
            scarce: None,
        }
    }

    /// Refuses a step, with the bug's effect.
    fn refuse(&mut self, step: &Step) -> Outcome {
        let instead = match (self.neglect, step.call) {
            (Neglect::RefusedIsDone, call) => Some(call),
            (Neglect::RefusedLosesPage, Call::Store(at, ..)) => Some(forget(at)),
            _ => None,
        };
        if let Some(call) = instead {
            // An undefined call has no effect.
            let _ = self.model.judge(&Step { call, ..*step });
        }
        Outcome::Refused("planted".into())
    }
}

/// The call that drops the page of an address.
fn forget(at: Address) -> Call {
    let start = Address {
        offset: at.offset / PAGE * PAGE,
        ..at
    };
    Call::Advise(Range::pages(start, 1), Advice::DontNeed)
}

impl System for Careless {
    fn name(&self) -> &str {
        self.neglect.name()
    }

    /// The bugs do not affect which pages are in memory.
    fn supports(&self, step: &Step) -> bool {
        !matches!(step.call, Call::InCore(_))
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn halfway(&self) -> Halfway {
        Halfway::Undone
    }

    fn reset(&mut self) -> Result<(), Broken> {
        *self = Careless::new(self.neglect);
        Ok(())
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        if let Call::Scarce(scarcity) = step.call {
            self.scarce = Some(scarcity);
            return Ok(Outcome::Done);
        }
        let scarce = self.scarce.take();
        let fails = matches!(scarce, Some(Scarcity::Frame(_) | Scarcity::File(_)));
        if fails && !matches!(step.call, Call::Exit | Call::Remap(_)) {
            return Ok(self.refuse(step));
        }
        let outcome = self.model.judge(step).unwrap_or(Outcome::Segv);
        if let (Neglect::SwapLoses, Some(Scarcity::Swap(_)), Call::Store(at, ..)) =
            (self.neglect, scarce, step.call)
        {
            let call = forget(at);
            let _ = self.model.judge(&Step { call, ..*step });
        }
        Ok(outcome)
    }
}
