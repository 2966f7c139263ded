//! `scalevm man` and `scalevm completions`.

use crate::cli::{CompletionsArgs, ManArgs, definition};
use crate::output::file;
use crate::stdout;
use bench::Failure;
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes the pages.
pub fn run(args: &ManArgs) -> Result<u8, Failure> {
    let mut all = definition().disable_help_subcommand(true);
    all.build();
    match &args.out {
        Some(directory) => {
            fs::create_dir_all(directory).map_err(Failure::file(directory))?;
            write(&all, directory)?;
        }
        None => stdout::printed(page(&all).and_then(|page| io::stdout().write_all(&page))),
    }
    Ok(0)
}

/// Prints the script that the shell reads.
pub fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    // To memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut definition(), "scalevm", &mut script);
    stdout::printed(io::stdout().write_all(&script));
    Ok(0)
}

/// Writes the page of `command`, and the pages of its subcommands.
fn write(command: &Command, directory: &Path) -> Result<(), Failure> {
    let path = directory.join(format!("{}.1", name(command)));
    let page = page(command).map_err(Failure::file(&path))?;
    file::write(&path, &page)?;
    let mut below = command.get_subcommands();
    below.try_for_each(|one| write(one, directory))
}

fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// The page: the text of `--help`.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
