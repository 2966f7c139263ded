//! `scalevm man` and `scalevm completions`.

use crate::cli::manual::{COMMON, PAGES};
use crate::cli::{CompletionsArgs, ManArgs, definition};
use crate::output::file;
use crate::stdout;
use bench::Failure;
use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
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

/// The page: the text of `--help`, and then examples and exit codes.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // The text below `--help` is on the page as a section.
    let without = command.clone().after_help(Resettable::Reset);
    Man::new(without).render(&mut page)?;
    let Some(manual) = PAGES.iter().find(|one| one.command == name(command)) else {
        return Ok(page);
    };
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    let mut exits: Vec<_> = COMMON.iter().chain(manual.exits).collect();
    exits.sort_unstable();
    for (code, meaning) in exits {
        roff.control("TP", []);
        roff.text([bold(code.to_string())]);
        roff.text([roman(*meaning)]);
    }
    roff.control("SH", ["EXAMPLES"]);
    for (what, line) in manual.examples {
        roff.control("PP", []);
        roff.text([roman(*what)]);
        roff.control("PP", []);
        roff.control("RS", ["4"]);
        roff.text([bold(*line)]);
        roff.control("RE", []);
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}
