//! What the model says to a step.

use crate::outcome::Outcome;

/// Why the evaluation of a step ends early.
pub enum Stop {
    /// It has come to this.
    With(Outcome),
    /// What happens is not defined; the model has changed nothing.
    Undefined(&'static str),
}

/// What a step leads to. An errno that is an `Err` ends the step half-way; one that is not
/// comes of a step that did what it could.
pub type Answer<T = Outcome> = Result<T, Stop>;

/// The step fails so.
pub fn fails<T>(errno: i32) -> Answer<T> {
    Err(Stop::With(Outcome::Errno(errno)))
}

/// Nobody says what happens.
pub fn undefined<T>(why: &'static str) -> Answer<T> {
    Err(Stop::Undefined(why))
}
