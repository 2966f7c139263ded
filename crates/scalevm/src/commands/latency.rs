//! `scalevm latency`: a film played during a build.

use crate::cli::LatencyArgs;
use crate::output::lateness;
use bench::{Failure, Lateness, Plan};

/// The work of the other tasks.
const BUILD: &str = "build";

/// Plays the film alone, then during the build, and prints how late it was.
pub fn run(args: &LatencyArgs) -> Result<u8, Failure> {
    let common = &args.common();
    let on = super::on(common, args.vm.is_some())?;
    let system = super::system(on, args.vm, common)?;
    super::prepare()?;
    let plan = Plan {
        workload: workloads::find(BUILD).expect("a workload").into(),
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
