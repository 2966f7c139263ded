//! The model's answers.

use crate::outcome::Outcome;

/// Why the evaluation of a step ends early.
pub enum Stop {
    /// The step ends with this outcome.
    With(Outcome),
    /// The effect is undefined; the model has changed nothing.
    Undefined(&'static str),
}

/// The result of a step. An errno in an `Err` ends the step half-way; one in an `Ok` comes from a
/// step that did all it could.
pub type Answer<T = Outcome> = Result<T, Stop>;

/// The failure of a step with `errno`.
pub fn fails<T>(errno: i32) -> Answer<T> {
    Err(Stop::With(Outcome::Errno(errno)))
}

/// The answer if no outcome is defined.
pub fn undefined<T>(why: &'static str) -> Answer<T> {
    Err(Stop::Undefined(why))
}
