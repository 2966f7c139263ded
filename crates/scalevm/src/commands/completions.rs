//! `scalevm completions`.

use crate::cli::{Cli, CompletionsArgs};
use crate::harness::Failure;
use clap::CommandFactory;
use std::io::{self, Write};

/// Prints what the shell reads.
pub fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    // To memory first: the generator panics where it can not write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "scalevm", &mut script);
    let printed = io::stdout().write_all(&script);
    printed.map_err(Failure::start("completions"))?;
    Ok(0)
}
