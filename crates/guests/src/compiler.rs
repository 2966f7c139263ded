//! Static programs from C.

use crate::{Error, tool};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C library that a program is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// musl: few system calls, and the oldest ones.
    Musl,
    /// glibc.
    Gnu,
}

impl Library {
    /// Both.
    pub const ALL: [Library; 2] = [Library::Musl, Library::Gnu];

    /// The name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Library::Musl => "musl",
            Library::Gnu => "glibc",
        }
    }
}

/// Compiles `source` to the static program `program`.
///
/// # Errors
/// Fails if the compiler is missing, or with its messages.
pub fn compile(source: &Path, program: &Path, library: Library) -> Result<(), Error> {
    let compiler = match library {
        Library::Musl => tool::MUSL_GCC,
        Library::Gnu => tool::GCC,
    };
    let compiler = compiler.find()?;
    let output = Command::new(&compiler)
        .args("-std=gnu11 -D_GNU_SOURCE -static -O1 -Wall -Wextra -Werror -pthread".split(' '))
        .args([source.as_os_str(), OsStr::new("-o"), program.as_os_str()])
        .output()
        .map_err(Error::at(&compiler))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Error::Build {
            what: source.display().to_string(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// A file or folder of this crate's sources.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
