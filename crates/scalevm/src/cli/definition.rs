//! The whole command line, as it is parsed and as manual pages and completions show it.

use super::Cli;
use crate::stdout;
use bench::Failure;
use clap::{Arg, Args, Command, CommandFactory, FromArgMatches};
use clap_complete::Shell;
use std::fmt::Write;
use std::path::PathBuf;

/// The commands by what they are for, as `scalevm --help` lists them.
const GROUPS: [(&str, &[&str]); 3] = [
    (
        "Your machine",
        &[
            "run",
            "sweep",
            "profile",
            "top",
            "record",
            "recording",
            "compare",
            "history",
            "report",
            "doctor",
            "list",
        ],
    ),
    (
        "Research",
        &[
            "whatif",
            "locks",
            "latency",
            "reproduce",
            "predict",
            "incident",
            "campaign",
            "calibrate",
            "check",
            "kernel",
        ],
    ),
    ("Installation", &["man", "completions"]),
];
/// Values of an option that its help lists at most; `scalevm list` has them all.
const LISTED: usize = 8;

/// `man`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Install all pages:
    scalevm man --out /usr/local/share/man/man1

Exit codes: 0 done, 2 bad usage, or a file that cannot be written.")]
pub struct ManArgs {
    /// Write a page for each command to this directory (default: the main page to stdout)
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `completions`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  For this shell:
    scalevm completions bash

Exit codes: 0 done, 2 bad usage.")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// All commands and options.
pub fn definition() -> Command {
    shown(visible(Cli::command()))
}

/// The command line of this process; the text to print instead if it asks for help or has an error.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut all = shown(Cli::command());
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
    if let Some(end) = all.get_after_long_help() {
        command = command.after_long_help(end.clone());
    }
    command
}

/// The command line with its help.
fn shown(command: Command) -> Command {
    let help = groups(&command);
    brief(negative(command)).help_template(help)
}

/// The help of the whole command: its subcommands in groups.
fn groups(command: &Command) -> String {
    let mut help = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for (title, names) in GROUPS {
        writeln!(help, "{title}:").expect("a string");
        for name in names {
            let found = command.find_subcommand(name);
            let about = found.and_then(Command::get_about).expect("a command");
            writeln!(help, "  {name:<11}  {about}").expect("a string");
        }
        help.push('\n');
    }
    help + "Options:\n{options}{after-help}"
}

/// Leaves long lists of values out of the help.
fn brief(command: Command) -> Command {
    let without_values = |argument: Arg| {
        let is_long = argument.get_possible_values().len() > LISTED;
        argument.hide_possible_values(is_long)
    };
    command.mut_args(without_values).mut_subcommands(brief)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a line, as a shell reads it: single quotes are all it may have.
    fn words(line: &str) -> impl Iterator<Item = String> {
        let parts = line.split('\'').enumerate();
        parts.flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
    }

    /// Checks the help of `command` and of its subcommands.
    fn check(command: &Command) {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        let end = command.get_after_long_help().expect(name).to_string();
        let (examples, exits) = end.split_once("\n\nExit codes:").expect(name);
        let lines = examples
            .lines()
            .filter_map(|line| line.strip_prefix("    "));
        let lines: Vec<&str> = lines.collect();
        assert!(!lines.is_empty(), "{name} has no example");
        for line in lines {
            assert!(line.starts_with(name), "{line} is an example of {name}");
            // A workload of one's own need not exist to be understood.
            if let Err(error) = definition().try_get_matches_from(words(line)) {
                panic!("{line}: {error}");
            }
        }
        assert!(
            exits.contains("2 "),
            "{name} does not tell bad usage:{exits}"
        );
        command.get_subcommands().for_each(check);
    }

    #[test]
    fn every_command_is_in_a_group() {
        let all = definition();
        let mut commands: Vec<&str> = all.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(commands, grouped);
    }

    #[test]
    fn every_command_has_examples_that_it_understands_and_exit_codes() {
        let mut all = definition().disable_help_subcommand(true);
        all.build();
        assert!(all.get_subcommands().count() > 15);
        check(&all);
    }
}
