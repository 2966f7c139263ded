//! How tests run the command, where they keep their files, and where the repository's are.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod command;
pub mod place;
pub mod sample;
pub mod scratch;
pub mod server;
pub mod tree;
