//! `scalevm whatif`: what a workload would gain without a cause.

use crate::cli::WhatIfArgs;
use crate::output::whatif::Shown;
use crate::output::{format, progress};
use bench::simulated::{Simulated, WhatIf};
use bench::{Failure, On, Plan, System};

/// Asks, and prints the answer.
pub fn run(args: &WhatIfArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let common = &args.common();
    let mut system = super::system(On::Sim, args.vm, common)?;
    let workload = super::workload(&args.what, &args.recorded, On::Sim)?;
    super::prepare()?;
    let tasks = most(args, system.simulated());
    let plan = Plan::of(workload.job, tasks, common.mode(), None);
    super::tell_if_crowded(&system, &plan);
    super::fit(&mut system, &plan, common)?;
    let alone = Plan { tasks: 1, ..plan };
    let schedule = super::schedule(&system, &alone, common)?;
    let System::Sim(target) = &system else {
        unreachable!("made above");
    };
    let counts = counts(args, tasks);
    let question = WhatIf {
        target,
        plan,
        counts: &counts,
        span: schedule.duration,
        corners: !args.no_corners,
    };
    let answer = match args.without.as_slice() {
        [] => question.ask(progress::bar)?,
        causes => question.without(causes.to_vec(), progress::bar)?,
    };
    let shown = Shown {
        plan: &plan,
        target,
        counts: &counts,
        at: &args.at,
    };
    if args.json {
        shown.print_json(&answer);
    } else {
        shown.print(&answer);
    }
    Ok(super::finished())
}

/// The most tasks.
fn most(args: &WhatIfArgs, target: Option<&Simulated>) -> usize {
    let asked = args.tasks.or(args.at.iter().copied().max());
    let cpus = target.map_or(1, |target| target.profile.cpus());
    asked.map_or(cpus, |tasks| tasks as usize)
}

/// The numbers of tasks to run: the user's, or powers of two; and the most.
fn counts(args: &WhatIfArgs, most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = args.at.iter().map(|&tasks| tasks as usize).collect();
    if counts.is_empty() {
        return super::up_to(most);
    }
    counts.retain(|&tasks| tasks < most);
    counts.push(most);
    counts.sort_unstable();
    counts.dedup();
    counts
}
