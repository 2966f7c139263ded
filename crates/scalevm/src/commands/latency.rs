//! `scalevm latency`: a film beside a workload.

use crate::cli::LatencyArgs;
use crate::harness::{Failure, Lateness, Plan};
use crate::output::{json, lateness};
use crate::simulated::Simulated;

/// Plays it alone, then beside the others, and prints how late it was.
pub fn run(args: &LatencyArgs) -> Result<u8, Failure> {
    args.check()?;
    let common = &args.common;
    let on = super::system(common, args.vm.is_some())?;
    let simulated = super::simulated_on(on, args.vm.as_deref(), common)?;
    let target = super::target(on, args.vm.as_deref(), common)?;
    super::prepare()?;
    let plan = Plan {
        workload: args.workload.into(),
        tasks: args.tasks as usize,
        mode: common.mode(),
        count: None,
    };
    super::warn_if_crowded(on, plan.tasks);
    let late = Lateness::watch(&*target, &plan, args.frames as usize)?;
    let subject = json::subject(
        &plan,
        on,
        args.vm.as_deref(),
        simulated.as_ref().map(Simulated::machine),
    );
    match common.json {
        true => lateness::print_json(&subject, &late),
        false => lateness::print(&plan, &late),
    }
    Ok(super::finished())
}
