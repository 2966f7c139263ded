//! `scalevm latency`: a film played during a workload.

use crate::cli::LatencyArgs;
use crate::output::lateness;
use bench::{Failure, Lateness, Plan};

/// Plays the film alone, then during the workload, and prints how late it was.
pub fn run(args: &LatencyArgs) -> Result<u8, Failure> {
    let common = &args.common();
    let on = super::on(common, args.vm.is_some())?;
    let system = super::system(on, args.vm, common)?;
    super::prepare()?;
    let plan = Plan {
        workload: args.workload.into(),
        tasks: args.tasks as usize,
        mode: common.mode(),
        count: None,
    };
    super::tell_if_crowded(&system, &plan);
    let late = Lateness::watch(system.target(), &plan, args.frames as usize)?;
    if common.json {
        lateness::print_json(&system.subject(&plan), &late)
    } else {
        lateness::print(&plan, &late)
    }
    Ok(super::finished())
}
