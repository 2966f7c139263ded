//! Programs that tasks start as processes of their own.

mod files;
mod image;

pub use files::{Files, Input, LIBRARIES};
pub(crate) use image::{Image, RELOCATED, Sizes, WRITTEN, expect_input};

use crate::exim::Mail;

/// What a process does that a task has started, see [`System::start`](crate::System::start).
#[derive(Debug)]
pub enum Program<'a, F> {
    /// It becomes the compiler by `exec`, and does [`compile`](crate::compile).
    Compiler {
        /// Which unit it compiles.
        unit: u64,
        /// Where to.
        output: &'a F,
    },
    /// It goes on in its copy of the memory, and does [`Mail::run`].
    Mail(Mail<'a, F>),
}
