//! The program that a guest runs: one program for all of scalevm's workloads, and a program made
//! from it for a test case of the user's.

use crate::harness::{Failure, Job, Plan, say};
use crate::own::{Directory, compile_static};
use guests::cargo;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// A program of this computer's, there while this lives.
pub(crate) struct Program {
    pub file: PathBuf,
    /// Where it was made, if only for this run.
    _directory: Option<Directory>,
}

/// The program in which the tasks of `plan` run.
pub(super) fn of(plan: &Plan) -> Result<Program, Failure> {
    let source = match plan.workload {
        Job::Own(own) => own.source.as_deref(),
        Job::Known(_) | Job::Film(_) | Job::Recorded(..) => None,
    };
    let Some(source) = source else {
        return Ok(Program {
            file: build()?,
            _directory: None,
        });
    };
    let directory = Directory::new().map_err(Failure::start("temporary directory"))?;
    Ok(Program {
        file: compile_static(source, &here().join("src/kernel/testcase.c"), &directory)?,
        _directory: Some(directory),
    })
}

/// Builds this crate without scalevm's own systems; done when first needed.
fn build() -> Result<PathBuf, Failure> {
    const NAME: &str = "scalevm-guest";
    if !cargo::static_program(NAME).exists() && io::stderr().is_terminal() {
        say(format_args!("scalevm: building the guest's program"));
    }
    Ok(cargo::build_static(
        "the guest's program",
        here(),
        &["--no-default-features", "--bin", NAME],
        NAME,
    )?)
}

/// This crate's sources.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
