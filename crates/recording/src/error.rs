//! What is wrong with a file, or with what is to be written to one.

use std::io;

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written at all.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no recording, or one of another version.
    #[error("{0}")]
    Foreign(String),
    /// A block is damaged.
    #[error("block {block} (byte {byte}): {why}")]
    Damaged {
        /// The block, counted from 0.
        block: u64,
        /// Where in the file it begins.
        byte: u64,
        /// The error.
        why: String,
    },
    /// What is to be written contradicts what was written before.
    #[error("{0}")]
    Invalid(String),
}
