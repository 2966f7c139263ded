//! The runs that a campaign may have.

use crate::cli::{Cli, Command, LocksOn};
use crate::commands::on;
use bench::{Failure, On};
use clap::Parser;

/// Fails if the command line of a point makes no sense, or says something else in each run.
pub fn check(argv: &[String]) -> Result<(), String> {
    let words = ["scalevm"]
        .into_iter()
        .chain(argv.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| first_line(&error.to_string()))?;
    match &cli.command {
        Some(Command::Run(args)) => simulated(on(&args.common, args.vm.is_some())),
        Some(Command::Sweep(args)) => simulated(on(&args.common, !args.vm.is_empty())),
        Some(Command::Latency(args)) => simulated(on(&args.common(), args.vm.is_some())),
        Some(Command::Locks(args)) => simulated(Ok(match args.on() {
            LocksOn::Sim => On::Sim,
            LocksOn::Hosted => On::Hosted,
        })),
        Some(Command::Reproduce(_) | Command::Predict(_) | Command::Check(_)) => Ok(()),
        _ => Err("expected a command that simulates, e.g. run".into()),
    }
}

fn simulated(on: Result<On, Failure>) -> Result<(), String> {
    let why = match on {
        Ok(On::Sim) => return Ok(()),
        Ok(_) => "on = \"sim\" is missing".into(),
        Err(failure) => failure.to_string(),
    };
    Err(format!(
        "only simulated runs give the same result everywhere; {why}"
    ))
}

fn first_line(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::check;

    fn check_line(line: &str) -> Result<(), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        check(&words)
    }

    #[test]
    fn points_are_simulated_runs() {
        for good in [
            "run mmap1 --on=sim --tasks=2 --json",
            "run mmap1 --machine=freebsd-96 --json",
            "run server.vmrec --on=sim --json",
            "locks --on=sim --json",
            "sweep mmap1 brk1 --on=sim --cpus=1,2 --json",
            "check races --seeds=3 --json",
            "reproduce S3 --json",
            "predict kogan-cna --seed=2 --json",
        ] {
            assert_eq!(check_line(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("run mmap1 --json", "only simulated"),
            (
                "run mmap1 --on=os --machine=freebsd-96 --json",
                "only simulated",
            ),
            ("run mmap1 --on=sim --taks=2 --json", "--taks"),
            ("run mmap9 --on=sim --json", "mmap9"),
            (
                "doctor --json",
                "expected a command that simulates, e.g. run",
            ),
            ("profile mmap1 --on=sim --json", ""),
        ] {
            let said = check_line(bad).expect_err(bad);
            assert!(said.contains(why) && !said.contains('\n'), "{bad}: {said}");
        }
    }
}
