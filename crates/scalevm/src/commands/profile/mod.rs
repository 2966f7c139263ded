//! `scalevm profile`: where the time goes.

mod difference;
pub mod files;

use crate::cli::{ProfileArgs, WorkloadArgs};
use crate::harness::{Failure, Plan};
use crate::output::profile;
use crate::profiling::Subject;
use stats::store::Writer;
use std::path::PathBuf;

/// Profiles a run, or compares two profiles.
pub fn run(args: &ProfileArgs) -> Result<u8, Failure> {
    match (&args.what, args.diff.as_slice()) {
        (_, [before, after]) => difference::run(args, before, after),
        (Some(what), _) => one(args, what),
        (None, _) => unreachable!("the command line asks for one of the two"),
    }
}

fn one(args: &ProfileArgs, what: &WorkloadArgs) -> Result<u8, Failure> {
    let common = &args.common;
    let on = super::system(common, args.vm.is_some())?;
    super::prepare()?;
    let workload = super::workload(what, on)?;
    let plan = Plan {
        workload: workload.job,
        tasks: args.tasks as usize,
        mode: common.mode(),
        count: None,
    };
    super::warn_if_crowded(on, plan.tasks);
    let subject = Subject {
        on,
        vm: args.vm.as_deref(),
        plan,
        schedule: args.schedule(on),
        frequency: args.frequency,
        common,
    };
    let Some(seen) = subject.profile()? else {
        return Ok(super::finished());
    };
    match common.json {
        true => println!("{}", files::line(&seen)),
        false => profile::print(&plan, &seen),
    }
    profile::notes(&seen.notes);
    if let Some(store) = &common.keep.store {
        let mut kept = Writer::create(store)?;
        kept.append_aside(&files::line(&seen))?;
        eprintln!("scalevm: kept in {}", kept.path().display());
    }
    let directory = args.out.clone().or_else(|| {
        let what = &seen.subject;
        let name = format!("profile-{}-{}-{}", what.workload, what.on, what.tasks);
        (!common.json).then(|| PathBuf::from(name))
    });
    if let Some(directory) = directory {
        files::write(&seen, &directory)?;
        eprintln!(
            "scalevm: flame graphs and stacks are in {}",
            directory.display()
        );
    }
    Ok(super::finished())
}
