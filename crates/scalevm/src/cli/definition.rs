//! The whole command line, as it is parsed and as manual pages and completions show it.

use super::Cli;
use crate::stdout;
use bench::Failure;
use clap::{Arg, Args, Command, CommandFactory, FromArgMatches};
use clap_complete::Shell;
use std::path::PathBuf;

/// `man`.
#[derive(Args)]
pub struct ManArgs {
    /// Write a page for each command to this directory (default: the main page to stdout)
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `completions`.
#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// All commands and options.
pub fn definition() -> Command {
    negative(visible(Cli::command()))
}

/// The command line of this process; the text to print instead if it asks for help or has an error.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut all = negative(Cli::command());
    let matches = all.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut all))
}

/// Prints it; returns the exit code.
pub fn told(said: &clap::Error) -> Result<u8, Failure> {
    let printed = said.print();
    if !said.use_stderr() {
        stdout::printed(printed);
    }
    Ok(u8::try_from(said.exit_code()).unwrap_or(u8::MAX))
}

/// The same without commands that are not for users: generators of completions show those too.
fn visible(all: Command) -> Command {
    let shown = all.get_subcommands().filter(|one| !one.is_hide_set());
    let shown: Vec<Command> = shown.cloned().collect();
    let mut command = Command::new("scalevm").args(all.get_arguments().cloned());
    command = command.subcommands(shown);
    command = command.version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = all.get_about() {
        command = command.about(about.clone());
    }
    if let Some(after) = all.get_after_help() {
        command = command.after_help(after.clone());
    }
    command
}

/// Takes `-1` after an option for its value, and `-1,2` for its values, so that the refusal names
/// them.
fn negative(command: Command) -> Command {
    let with_values = |argument: Arg| {
        let takes = !argument.is_positional() && argument.get_action().takes_values();
        if takes && argument.get_value_delimiter().is_some() {
            argument.allow_hyphen_values(true)
        } else {
            argument.allow_negative_numbers(takes)
        }
    };
    command.mut_args(with_values).mut_subcommands(negative)
}
