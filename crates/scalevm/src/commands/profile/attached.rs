//! Processes that already run.

use super::Results;
use crate::cli::ProfileArgs;
use crate::commands;
use crate::output::json;
use bench::Failure;
use bench::profiling::Attached;
use perf::Whom;

/// Watches them, and shows where their time went.
pub fn run(args: &ProfileArgs, whom: Whom) -> Result<u8, Failure> {
    if let Some(option) = args.of_a_workload() {
        return Err(Failure::Unavailable(format!(
            "{option} applies only to a workload that is started, not to processes that already run"
        )));
    }
    commands::prepare()?;
    let results = Results::of(args)?;
    let span = args.common.duration;
    let attached = Attached::open(whom, &args.options(), json::machine)?;
    let end = match span {
        Some(span) => format!("for {} s", span.as_secs_f64()),
        None => "until Ctrl-C".to_owned(),
    };
    eprintln!("scalevm: watching {} {end}", attached.name());
    let seen = attached.profile(span)?;
    let heading = format!(
        "{}, watched for {:.1} s",
        seen.subject.workload, seen.seconds
    );
    results.put(&heading, &seen)?;
    Ok(commands::watched(span.is_some()))
}
