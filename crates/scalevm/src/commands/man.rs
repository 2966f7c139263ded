//! `scalevm man`.

use crate::cli::{Cli, ManArgs};
use crate::harness::Failure;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use stats::InputError;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes the pages.
pub fn run(args: &ManArgs) -> Result<u8, Failure> {
    let commands = Cli::command().disable_help_subcommand(true);
    match &args.out {
        Some(directory) => write(commands, directory)?,
        None => {
            let mut page = Vec::new();
            let rendered = Man::new(commands).render(&mut page);
            let printed = rendered.and_then(|()| io::stdout().write_all(&page));
            printed.map_err(Failure::start("manual page"))?;
        }
    }
    Ok(0)
}

fn write(commands: Command, directory: &Path) -> Result<(), InputError> {
    let made = fs::create_dir_all(directory);
    let written = made.and_then(|()| clap_mangen::generate_to(commands, directory));
    written.map_err(|source| InputError::Unreadable {
        file: directory.display().to_string(),
        source,
    })
}
