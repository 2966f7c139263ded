//! Why there is no guest.

use std::io;
use std::path::{Path, PathBuf};

/// Why a guest could not be prepared or started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This computer lacks a program.
    #[error("{program} not found: install Debian's package {package}")]
    Missing {
        /// Its name.
        program: &'static str,
        package: &'static str,
    },
    /// A file of the user's cannot be used.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        why: String,
    },
    /// Something does not compile.
    #[error("cannot build {what}:\n{output}")]
    Build {
        /// The target of the build.
        what: String,
        /// The compiler's messages.
        output: String,
    },
    /// A file cannot be read or written, or a program cannot be started.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// Names the file or program at fault.
    pub(crate) fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io {
            path: path.as_ref().to_owned(),
            source,
        }
    }

    /// Says why a file of the user's cannot be used.
    pub(crate) fn unusable(path: impl AsRef<Path>, why: impl Into<String>) -> Error {
        Error::Unusable {
            path: path.as_ref().to_owned(),
            why: why.into(),
        }
    }

    /// Returns true if another choice of the user's, or a package, would help.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Missing { .. } | Error::Unusable { .. })
    }
}
