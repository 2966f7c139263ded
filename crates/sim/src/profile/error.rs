//! Why a profile is refused.

use std::io;

/// Why a profile is refused. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A line breaks the format.
    #[error("{file}:{line}: {reason}")]
    Line {
        /// The file, as the user named it.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The key and its error.
        reason: String,
    },
    /// Every line is valid by itself, but they contradict each other.
    #[error("{file}: {reason}")]
    Invalid {
        /// The file or the profile.
        file: String,
        /// The key and its error.
        reason: String,
    },
    /// There is no built-in machine of this name.
    #[error("unknown machine `{name}`; expected one of {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
}
