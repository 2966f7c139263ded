//! `scalevm run --count`: what a run with an end takes.

use crate::cli::CommonArgs;
use crate::harness::{Failure, Job, Plan, Target, Times, interrupt};
use crate::output::times;
use stats::record::Subject;

/// Runs `samples` times and prints each.
pub fn run(
    target: &dyn Target,
    plan: &Plan,
    samples: u32,
    subject: &Subject,
    common: &CommonArgs,
) -> Result<u8, Failure> {
    check(plan, samples, common)?;
    if !common.json {
        println!("testcase:{}", plan.workload.description());
    }
    let mut all: Vec<Times> = Vec::new();
    for sample in 0..samples {
        let times = match target.complete(plan, sample) {
            Err(Failure::Interrupted(_)) if sample > 0 => break,
            times => times?,
        };
        match common.json {
            true => times::print_json(subject, plan, sample, &times),
            false => times::print(&times),
        }
        all.push(times);
    }
    if !common.json {
        times::print_rate(plan, &all);
    }
    Ok(super::finished())
}

/// Whether such a run has an end, and something to show.
fn check(plan: &Plan, samples: u32, common: &CommonArgs) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure::Unavailable(why.to_owned()));
    if let Job::Own(_) = plan.workload {
        return refused("a workload of your own goes on until it is ended; leave out --count");
    }
    if plan.count < Some(plan.tasks as u64) {
        return refused("--count must be at least the number of tasks: each does something");
    }
    if samples == 0 {
        return refused("--samples 0 has no end; leave out --count");
    }
    if common.keep.store.is_some() {
        return refused("--store keeps rates; leave out --count");
    }
    interrupt::check()
}
