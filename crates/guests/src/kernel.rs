//! The kernel that a guest boots.

use crate::cargo::{self, Build};
use crate::{Error, source};
use std::path::{Path, PathBuf};

/// A kernel, and its command line.
#[derive(Clone, Debug)]
pub enum Guest {
    /// scalevm's own.
    Ours {
        /// Its executable.
        kernel: PathBuf,
        /// Words of its command line.
        words: Vec<String>,
    },
    /// Linux, to compare with.
    Linux { image: PathBuf },
}

/// Linux's command line: the serial line is the console, only the program prints, a panic ends the
/// machine; pages of 4 KiB, and addresses that are the same in each run. Clocks are right, however
/// late a busy host lets them tick.
const LINUX: &str = "console=ttyS0 quiet loglevel=0 panic=-1 reboot=t transparent_hugepage=never \
                     nokaslr no_timer_check tsc=reliable";

impl Guest {
    /// The kernel's file.
    pub fn file(&self) -> &Path {
        match self {
            Guest::Ours { kernel, .. } => kernel,
            Guest::Linux { image } => image,
        }
    }

    /// The kernel's command line.
    pub(crate) fn words(&self) -> String {
        match self {
            Guest::Ours { words, .. } => words.join(" "),
            Guest::Linux { .. } => LINUX.to_owned(),
        }
    }
}

/// Where the kernel is once it is built.
pub fn executable() -> PathBuf {
    folder().join("target").join(BUILT)
}

/// The kernel's executable within the folder of a build.
const BUILT: &str = "x86_64-unknown-linux-gnu/release/kernel";

/// Builds scalevm's kernel, if that is not done, and returns its executable.
///
/// # Errors
/// Fails if the sources are not where this program was built, or with the compiler's messages.
pub fn build() -> Result<PathBuf, Error> {
    let folder = folder();
    cargo::build(&Build {
        what: "the kernel",
        folder: &folder,
        arguments: &[],
        target: None,
        flags: None,
    })?;
    Ok(executable())
}

/// Builds, if that is not done, a kernel whose profile includes locks, and returns its executable.
///
/// # Errors
/// Fails if the sources are not where this program was built, or with the compiler's messages.
pub fn build_watched() -> Result<PathBuf, Error> {
    let folder = folder();
    let target = folder.join("target/watched");
    cargo::build(&Build {
        what: "the kernel",
        folder: &folder,
        arguments: &["--features", "lock-profile"],
        target: Some(&target),
        flags: None,
    })?;
    Ok(target.join(BUILT))
}

fn folder() -> PathBuf {
    source("../../kernel")
}
