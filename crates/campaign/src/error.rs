//! The reason why a campaign cannot go on.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a campaign cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The plan makes no sense.
    #[error("{}: {why}", path.display())]
    Plan {
        /// The plan's file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// A result is not what its name says.
    #[error("{}: {why}", path.display())]
    Result {
        /// The result's file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Some points have no result yet.
    #[error("{missing} of {all} points have no result, the first of them {first}")]
    Missing {
        /// The number of points that have none.
        missing: usize,
        /// The number of points.
        all: usize,
        /// The number of the first.
        first: usize,
    },
    /// A program of the engine fails, or is missing.
    #[error("{program}: {why}")]
    Engine {
        /// Its name.
        program: &'static str,
        /// What it says.
        why: String,
    },
}

impl Error {
    /// Names the file that cannot be used.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::File {
            path: path.to_owned(),
            source,
        }
    }
}
