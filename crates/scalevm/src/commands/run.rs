//! `scalevm run`: one measurement, as will-it-scale prints it.

use crate::cli::{On, RunArgs};
use crate::harness::{Failure, Plan, measure};
use crate::output::lines::Lines;
use crate::output::{attribution, json};
use crate::simulated::Simulated;

/// Measures and prints.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let common = &args.common;
    let on = super::system(common, args.vm.is_some())?;
    let simulated = match on {
        On::Sim => Some(super::simulated(args.vm.as_deref(), common)?),
        On::Os | On::Hosted => None,
    };
    let target = super::target(on, args.vm.as_deref(), common)?;
    let plan = Plan {
        workload: args.workload.into(),
        tasks: args.tasks as usize,
        mode: common.mode(),
    };
    let schedule = common.schedule(on);
    super::prepare()?;
    super::warn_if_crowded(on, plan.tasks);
    if common.json {
        let machine = simulated.as_ref().map(Simulated::machine);
        let subject = json::subject(&plan, on, args.vm.as_deref(), machine);
        let mut machine = json::machine();
        let mut out = std::io::stdout();
        let mut records = json::Records::new(&subject, &mut out, None);
        let outcome = measure(&*target, &plan, &schedule, &mut records)?;
        // A run that was cut short has no summary; one without an end is meant to be.
        if !outcome.interrupted || schedule.samples == 0 {
            records.finish(&mut machine);
        }
    } else {
        let mut lines = Lines::new(plan.workload.description());
        let outcome = measure(&*target, &plan, &schedule, &mut lines)?;
        lines.average(&outcome);
        if on == On::Sim {
            lines.spread(&outcome);
        }
    }
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
