//! scalevm: why does a memory operation not scale, and did the change fix it?

mod calibrate;
mod catalog;
mod check;
mod cli;
mod commands;
mod doctor;
mod harness;
mod locks;
mod os;
mod ours;
mod output;
mod own;
mod profiling;
mod reproduce;
mod simulated;
mod tasks;

use clap::Parser;
use std::process::ExitCode;

/// Simulated CPUs allocate in their machine, all else from the system.
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

fn main() -> ExitCode {
    if let Some(code) = os::compiler::run() {
        return code;
    }
    // `scalevm … | head` ends quietly, as other tools do.
    // SAFETY: no handler is involved, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // `check races` switches it on again.
    sync::watch::order::switch(false);
    let result = match cli::Cli::parse().command {
        None => commands::story::run(),
        Some(cli::Command::Compare(args)) => commands::compare::run(&args),
        Some(cli::Command::History(args)) => commands::history::run(&args),
        Some(cli::Command::Report(args)) => commands::report::run(&args),
        Some(cli::Command::List(args)) => commands::list::run(&args),
        Some(cli::Command::Run(args)) => commands::run::run(&args),
        Some(cli::Command::Sweep(args)) => commands::sweep::run(&args),
        Some(cli::Command::Profile(args)) => commands::profile::run(&args),
        Some(cli::Command::Latency(args)) => commands::latency::run(&args),
        Some(cli::Command::Locks(args)) => commands::locks::run(&args),
        Some(cli::Command::Reproduce(args)) => commands::reproduce::run(&args),
        Some(cli::Command::Scaling(args)) => commands::scaling::run(&args),
        Some(cli::Command::Calibrate(args)) => commands::calibrate::run(&args),
        Some(cli::Command::Check(args)) => check::run(&args),
        Some(cli::Command::Doctor(args)) => commands::doctor::run(&args),
        Some(cli::Command::Man(args)) => commands::man::run(&args),
        Some(cli::Command::Completions(args)) => commands::completions::run(&args),
        Some(cli::Command::Host(args)) => own::host::run(&args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("scalevm: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
