//! `scalevm whatif`: what a workload would gain without a cause.

use crate::cli::WhatIfArgs;
use crate::output::whatif::Shown;
use crate::output::{delays, format, progress};
use bench::simulated::{Simulated, WhatIf};
use bench::tasks::places;
use bench::{Delays, Failure, On, Plan, System};
use std::time::Duration;

/// Windows with each delay: as many as an interval of 95 % needs, and one that may be left out.
const ROUNDS: usize = 9;

/// Asks, and prints the answer.
pub fn run(args: &WhatIfArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let common = &args.common();
    let on = super::on(common, args.vm.is_some())?;
    super::simulated_only(args.given(), on == On::Sim)?;
    let mut system = super::system(on, args.vm, common)?;
    let workload = super::workload(&args.what, &args.recorded, on)?;
    super::prepare()?;
    let tasks = most(args, system.simulated())?;
    let plan = Plan::of(workload.job, tasks, common.mode(), None);
    super::tell_if_crowded(&system, &plan);
    super::fit(&mut system, &plan, common)?;
    let alone = Plan { tasks: 1, ..plan };
    let schedule = super::schedule(&system, &alone, common)?;
    let target = match &system {
        System::Sim(target) if !args.delays => target,
        _ => return delay(args, &system, plan, schedule.duration),
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

/// Asks by delays in windows of `span`.
fn delay(args: &WhatIfArgs, system: &System, plan: Plan, span: Duration) -> Result<u8, Failure> {
    if system.on() != On::Sim {
        super::warn_if_noisy(span * ROUNDS as u32, None);
    }
    let question = Delays {
        system,
        plan,
        span,
        rounds: ROUNDS,
    };
    let answer = question.ask(progress::bar)?;
    if args.json {
        delays::print_json(&question, &answer);
    } else {
        delays::print(&question, &answer);
    }
    Ok(super::finished())
}

/// The most tasks.
fn most(args: &WhatIfArgs, target: Option<&Simulated>) -> Result<usize, Failure> {
    let asked = args.tasks.or(args.at.iter().copied().max());
    match (asked, target) {
        (Some(tasks), _) => Ok(tasks as usize),
        (None, Some(target)) => Ok(target.profile.cpus()),
        (None, None) => places::cpus(),
    }
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
