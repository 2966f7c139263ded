//! How tests run the command, and where they keep their files.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod command;
pub mod place;
pub mod sample;
pub mod scratch;
