//! Programs that tasks start as processes of their own.

mod files;
mod image;

pub use files::{Files, Input, LIBRARIES};
pub(crate) use image::{Image, RELOCATED, Sizes, WRITTEN, expect_input};

use crate::exim::Mail;

/// A process that a task starts, see [`System::start`](crate::System::start).
#[derive(Debug)]
pub enum Program<'a, F> {
    /// It becomes the compiler by `exec`, and runs [`compile`](crate::compile).
    Compiler {
        /// The unit that it compiles.
        unit: u64,
        /// The output file.
        output: &'a F,
    },
    /// It continues in its copy of the memory, and runs [`Mail::run`].
    Mail(Mail<'a, F>),
}
