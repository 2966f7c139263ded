//! Why there is no profile.

use std::io;

/// Why there is no profile. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file can not be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A line is not what the format allows.
    #[error("{file}:{line}: {reason}")]
    Line {
        /// The file, as the user named it.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The key and what is wrong with it.
        reason: String,
    },
    /// Every line is sound but the whole is not.
    #[error("{file}: {reason}")]
    Invalid {
        /// The file or the profile.
        file: String,
        /// The key and what is wrong with it.
        reason: String,
    },
    /// There is no built-in machine of this name.
    #[error("there is no machine `{name}`; there are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those there are.
        known: String,
    },
}
