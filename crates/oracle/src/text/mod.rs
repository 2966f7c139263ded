//! Sequences as text: one step per line; `#` starts a comment.
//!
//! ```text
//! 0: map anywhere 4p rw- private anonymous as h1
//! 0: map fixed w510 4p rw- shared file 1 @2p populate
//! 0: store word w511+8 0x2a
//! 0: fork 1
//! 1: load word w511+8
//! ```
//!
//! The number before the colon is the process. `w510` is page 510 of the window, `h1:2` the third
//! page of handle 1's mapping, `b0` the heap's first page, `0x…` an absolute address; `+8` is a
//! byte in the page. `4p` is four pages; lengths without a `p` are bytes.

mod parse;
mod print;

pub use parse::ParseError;

use crate::step::Step;
use std::fmt::Write;

/// The text of a sequence, as [`parse`] reads it.
pub fn print(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |mut text, step| {
        let _ = writeln!(text, "{step}");
        text
    })
}

/// Parses a sequence.
///
/// # Errors
/// The first invalid line, and why.
pub fn parse(text: &str) -> Result<Vec<Step>, ParseError> {
    let lines = text.lines().enumerate().map(|(index, line)| {
        let code = line.split('#').next().unwrap_or_default().trim();
        (index + 1, code)
    });
    let steps = lines.filter(|(_, code)| !code.is_empty());
    let parse =
        |(line, code): (usize, &str)| code.parse().map_err(|why: String| ParseError { line, why });
    steps.map(parse).collect()
}
