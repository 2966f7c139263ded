//! `scalevm run`: one measurement, as will-it-scale prints it.

use crate::cli::RunArgs;
use crate::harness::{Failure, Plan, measure};
use crate::output::json;
use crate::output::lines::Lines;

/// Measures and prints.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let on = super::system(&args.common, args.vm.is_some())?;
    let target = super::target(on, args.vm.as_deref(), &args.common)?;
    let plan = Plan {
        workload: args.workload,
        tasks: args.tasks as usize,
        mode: args.common.mode(),
    };
    let schedule = args.common.schedule();
    super::prepare()?;
    super::warn_if_crowded(plan.tasks);
    if args.common.json {
        let subject = json::subject(&plan, on, args.vm.as_deref());
        let mut machine = json::machine();
        let mut out = std::io::stdout();
        let mut records = json::Records::new(&subject, &mut out, None);
        let outcome = measure(&*target, &plan, &schedule, &mut records)?;
        // A run that was cut short has no summary; one without an end is meant to be.
        if !outcome.interrupted || schedule.samples == 0 {
            records.finish(&mut machine);
        }
    } else {
        let mut lines = Lines::new(plan.workload.description);
        let outcome = measure(&*target, &plan, &schedule, &mut lines)?;
        lines.average(&outcome);
    }
    Ok(super::finished())
}
