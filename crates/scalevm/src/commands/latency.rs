//! `scalevm latency`: a film beside a workload.

use crate::cli::{LatencyArgs, On};
use crate::harness::{Failure, Film, Lateness, Plan, Target};
use crate::output::{json, lateness};
use crate::simulated::Simulated;

/// Plays it alone, then beside the others, and prints how late it was.
pub fn run(args: &LatencyArgs) -> Result<u8, Failure> {
    args.check()?;
    let common = &args.common;
    let on = super::system(common, args.vm.is_some())?;
    let simulated = match on {
        On::Sim => Some(super::simulated(args.vm.as_deref(), common)?),
        On::Os | On::Hosted => None,
    };
    let target = super::target(on, args.vm.as_deref(), common)?;
    super::prepare()?;
    let plan = Plan {
        workload: args.workload.into(),
        tasks: args.tasks as usize,
        mode: common.mode(),
        count: None,
    };
    super::warn_if_crowded(on, plan.tasks);
    let late = watch(&*target, &plan, args.frames as usize)?;
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

/// How late the frames of a film of that length are beside the workload of `plan`.
pub fn watch(target: &dyn Target, plan: &Plan, frames: usize) -> Result<Lateness, Failure> {
    let background = plan.workload.known()?;
    let play = |tasks| {
        let film = Film::new(background, frames);
        let plan = Plan {
            workload: film.into(),
            tasks,
            ..*plan
        };
        target.play(&plan, film).map(|()| film.frames())
    };
    let alone = play(1)?;
    Ok(Lateness::of(&play(plan.tasks)?, &alone))
}
