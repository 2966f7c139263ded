//! `scalevm run`: one measurement, as will-it-scale prints it.

use crate::cli::{On, RunArgs};
use crate::harness::{Failure, Plan, Together, measure};
use crate::output::lines::Lines;
use crate::output::sink::Sink;
use crate::output::{attribution, json};
use crate::simulated::Simulated;

/// Measures and prints.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let common = &args.common;
    let on = super::system(common, args.vm.is_some())?;
    let simulated = super::simulated_on(on, args.vm.as_deref(), common)?;
    let target = super::target(on, args.vm.as_deref(), common)?;
    super::prepare()?;
    let workload = super::workload(&args.what, on)?;
    let plan = Plan {
        workload: workload.job,
        tasks: args.tasks as usize,
        mode: common.mode(),
        count: args.count,
    };
    let schedule = common.schedule(on);
    super::warn_if_crowded(on, plan.tasks);
    let of_machine = simulated.as_ref().map(Simulated::machine);
    let subject = json::subject(&plan, on, args.vm.as_deref(), of_machine);
    if args.count.is_some() {
        return super::times::run(&*target, &plan, schedule.samples, &subject, common);
    }
    let mut out = std::io::stdout();
    let mut sink = Sink::open(common.json.then_some(&mut out), &common.keep)?;
    let mut machine = sink.is_some().then(json::machine);
    let mut records = sink
        .as_mut()
        .map(|sink| json::Records::new(&subject, sink, None));
    let mut lines = (!common.json).then(|| Lines::new(plan.workload.description()));
    let mut watch = Together::default().with(&mut lines).with(&mut records);
    let outcome = measure(&*target, &plan, &schedule, &mut watch)?;
    // A run that was cut short has no summary; one without an end is meant to be.
    let whole = !outcome.interrupted || schedule.samples == 0;
    if let Some((records, machine)) = records.zip(machine.as_mut()).filter(|_| whole) {
        records.finish(machine);
    }
    if let Some(lines) = lines {
        lines.average(&outcome);
        if on == On::Sim {
            lines.spread(&outcome);
        }
    }
    sink.map_or(Ok(()), Sink::finish)?;
    if let Some(simulated) = simulated.filter(|_| super::finished() == 0) {
        let attribution = simulated.attribute(&plan, schedule.duration)?;
        let range = simulated.corners(&plan, schedule.duration)?;
        match common.json {
            true => attribution::print_json(&plan, &simulated, &attribution, range),
            false => attribution::print(&attribution, range),
        }
    }
    Ok(super::finished())
}
