//! `scalevm run`: one measurement, as will-it-scale prints it.

use crate::cli::{CommonArgs, RunArgs};
use crate::output::lines::Lines;
use crate::output::progress::{self, Progress};
use crate::output::sink::Sink;
use crate::output::{attribution, format, json, times};
use bench::{Failure, Job, On, Plan, Target, Times, Together, interrupt, measure};
use stats::record::Subject;

/// Measures and prints.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let common = &args.common;
    format::choose(common.format.format);
    let on = super::on(common, args.vm.is_some())?;
    let mut system = super::system(on, args.vm, common)?;
    super::prepare()?;
    let workload = super::workload(&args.what, &args.recorded, on)?;
    let tasks = args.tasks as usize;
    let plan = Plan::of(workload.job, tasks, common.mode(), args.count);
    super::fit(&mut system, &plan, common)?;
    let (target, simulated) = (system.target(), system.simulated());
    super::tell_if_crowded(&system, &plan);
    let subject = system.subject(&plan);
    if args.count.is_some() {
        return complete(target, &plan, common.schedule(on).samples, &subject, common);
    }
    let schedule = super::schedule(&system, &plan, common)?;
    let mut out = std::io::stdout();
    let mut sink = Sink::open(
        common.json.then_some(&mut out),
        common.keep.store.as_deref(),
        common.keep.label.as_deref(),
    )?;
    let mut machine = sink.is_some().then(json::machine);
    if simulated.is_none() {
        super::warn_if_noisy(schedule.span(), machine.as_ref());
    }
    // Real samples say when they come how fast they come; simulated ones may take minutes each.
    let progress = match simulated {
        Some(_) => Progress::new(schedule.total().unwrap_or(0), "runs"),
        None => Progress::none(),
    };
    let mut records = sink
        .as_mut()
        .map(|sink| json::Records::new(&subject, sink, common.json.then_some(&progress)));
    let mut lines = (!common.json).then(|| Lines::new(plan.workload.description(), &progress));
    progress.point(&format!(
        "{}, {}",
        plan.workload.name(),
        plan.mode.count(plan.width())
    ));
    let mut bar = Some(&progress);
    let watch = Together::default().with(&mut lines).with(&mut records);
    let mut watch = watch.with(&mut bar);
    let outcome = measure(target, &plan, &schedule, &mut watch);
    progress.finish();
    let mut outcome = outcome?;
    // A run without an end is meant to be cut short.
    outcome.interrupted &= schedule.samples > 0;
    if let Some((mut records, machine)) = records.zip(machine.as_mut()) {
        records.finish(machine, &outcome);
    }
    if let Some(lines) = lines {
        lines.average(&outcome);
        if on == On::Sim {
            lines.spread(&outcome);
        }
    }
    sink.map_or(Ok(()), Sink::finish)?;
    if let Some(simulated) = simulated.filter(|_| super::finished() == 0) {
        let (attribution, range) = simulated.reasons(&plan, schedule.duration, progress::bar)?;
        if common.json {
            attribution::print_json(&plan, simulated, &attribution, range)
        } else {
            attribution::print(&plan, simulated, &attribution, range)
        }
    }
    Ok(super::finished())
}

/// Runs `samples` times and prints each.
fn complete(
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
        if common.json {
            times::print_json(subject, plan, sample, &times)
        } else {
            times::print(&times)
        }
        all.push(times);
    }
    if !common.json {
        times::print_rate(plan, &all);
    }
    Ok(super::finished())
}

/// Fails if such a run has no end, or nothing to show.
fn check(plan: &Plan, samples: u32, common: &CommonArgs) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure::Unavailable(why.to_owned()));
    if let Job::Own(_) = plan.workload {
        return refused(
            "a workload of your own runs until it is stopped and conflicts with --count",
        );
    }
    if plan.count < Some(plan.tasks as u64) {
        return refused("--count must be at least the number of tasks, so that each has work");
    }
    if samples == 0 {
        return refused("--samples 0 runs until interrupted and conflicts with --count");
    }
    if common.keep.store.is_some() {
        return refused("--store keeps rates and conflicts with --count");
    }
    interrupt::check()
}
