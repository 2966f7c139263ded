//! scalevm: why does a memory operation not scale, and did the change fix it?

#[macro_use]
mod stdout;

mod cli;
mod commands;
mod output;

use std::process::ExitCode;

/// Simulated CPUs allocate in their machine, all else from the system.
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

fn main() -> ExitCode {
    if let Some(code) = bench::os::compiler::run() {
        return code;
    }
    // `check races` switches it on again.
    sync::watch::order::switch(false);
    let result = stdout::guard(|| match cli::parse() {
        Ok(command) => run(command),
        Err(said) => cli::told(&said),
    });
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("scalevm: {}", commands::explained(&failure));
            ExitCode::from(commands::exit_code(&failure))
        }
    }
}

fn run(command: cli::Cli) -> Result<u8, bench::Failure> {
    match command.command {
        None => commands::story::run(),
        Some(cli::Command::Compare(args)) => commands::compare::run(&args),
        Some(cli::Command::History(args)) => commands::history::run(&args),
        Some(cli::Command::Report(args)) => commands::report::run(&args),
        Some(cli::Command::List(args)) => commands::list::run(&args),
        Some(cli::Command::Run(args)) => commands::run::run(&args),
        Some(cli::Command::WhatIf(args)) => commands::whatif::run(&args),
        Some(cli::Command::Sweep(args)) => commands::sweep::run(&args),
        Some(cli::Command::Profile(args)) => commands::profile::run(&args),
        Some(cli::Command::Recording(args)) => commands::recording::run(&args),
        Some(cli::Command::Top(args)) => commands::top::run(&args),
        Some(cli::Command::Record(args)) => commands::record::run(&args),
        Some(cli::Command::Latency(args)) => commands::latency::run(&args),
        Some(cli::Command::Locks(args)) => commands::locks::run(&args),
        Some(cli::Command::Reproduce(args)) => commands::reproduce::run(&args),
        Some(cli::Command::Predict(args)) => commands::predict::run(&args),
        Some(cli::Command::Incident(command)) => commands::incident::run(&command),
        Some(cli::Command::Campaign(command)) => commands::campaign::run(&command),
        Some(cli::Command::Calibrate(args)) => commands::calibrate::run(&args),
        Some(cli::Command::Check(args)) => commands::check::run(&args),
        Some(cli::Command::Doctor(args)) => commands::doctor::run(&args),
        Some(cli::Command::Kernel(args)) => commands::kernel::run(&args),
        Some(cli::Command::Man(args)) => commands::man::run(&args),
        Some(cli::Command::Completions(args)) => commands::man::completions(&args),
        Some(cli::Command::Host(args)) => commands::host(&args),
    }
}
