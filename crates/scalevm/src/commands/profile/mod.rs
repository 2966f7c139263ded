//! `scalevm profile`: where the time goes.

mod difference;
pub mod files;

use crate::cli::{ProfileArgs, WorkloadArgs};
use crate::output::{file, format, json, profile, progress};
use bench::profiling::Subject;
use bench::{Failure, On, Plan};
use stats::record;
use stats::store::Writer;
use std::fs;
use std::path::{Path, PathBuf};

/// Profiles a run, or compares two profiles.
pub fn run(args: &ProfileArgs) -> Result<u8, Failure> {
    format::choose(args.common.format.format);
    match (&args.what, args.diff.as_slice()) {
        (_, [before, after]) => difference::run(args, before, after),
        (Some(what), _) => one(args, what),
        (None, _) => unreachable!("the command line asks for one of the two"),
    }
}

fn one(args: &ProfileArgs, what: &WorkloadArgs) -> Result<u8, Failure> {
    let common = &args.common;
    let on = super::on(common, args.vm.is_some())?;
    match on {
        On::Sim => one_window(args)?,
        On::Kernel if args.ring.is_some() => {
            return Err(Failure::Unavailable(
                "--ring applies to this computer's kernel, which cannot see into a guest".into(),
            ));
        }
        _ => {}
    }
    let mut system = super::system(on, args.vm, common)?;
    super::prepare()?;
    let workload = super::workload(what, on)?;
    let plan = Plan {
        workload: workload.job,
        tasks: args.tasks as usize,
        mode: common.mode(),
        count: None,
    };
    super::fit(&mut system, &plan, common)?;
    super::tell_if_crowded(&system, &plan);
    let directory = Place::of(args.out.as_deref(), common.json)?;
    let store = common.keep.store.as_deref().map(Writer::create);
    let store = store.transpose()?;
    let subject = Subject {
        system: &system,
        plan,
        schedule: args.schedule(on),
        options: args.options(),
        machine: json::machine,
        bars: progress::bar,
    };
    let Some(seen) = subject.profile()? else {
        return Ok(super::finished());
    };
    if common.json {
        println!("{}", files::line(&seen))
    } else {
        profile::print(&plan, &seen)
    }
    profile::notes(&seen.notes);
    if let Some(mut kept) = store {
        kept.append_aside(&files::line(&seen))?;
        eprintln!("scalevm: kept in {}", kept.path().display());
    }
    if let Some(directory) = directory.make(|| name(&seen.subject))? {
        files::write(&seen, &directory)?;
        eprintln!(
            "scalevm: flame graphs and stacks are in {}",
            directory.display()
        );
    }
    Ok(super::finished())
}

/// Refuses options of a kernel's profile, and those that ask for more than one window of a
/// simulated machine.
fn one_window(args: &ProfileArgs) -> Result<(), Failure> {
    let common = &args.common;
    let kernels = [
        ("--frequency", args.frequency.is_some()),
        ("--ring", args.ring.is_some()),
    ];
    if let Some((option, _)) = kernels.into_iter().find(|(_, given)| *given) {
        return Err(Failure::Unavailable(format!(
            "{option} applies to this computer's kernel, which takes no part in a simulation"
        )));
    }
    let more = |count: Option<u32>| count.is_some_and(|count| count != 1);
    let all = [
        ("--seeds", more(common.sim.seeds)),
        ("--samples", more(common.samples)),
        ("--warmup", common.warmup.is_some()),
    ];
    match all.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Unavailable(format!(
            "{option} does not apply to a simulated machine: its profile covers one window, with \
             one seed (--seed) and its own warm-up"
        ))),
        None => Ok(()),
    }
}

/// The default directory of a profile: `profile-mmap1-hosted-freebsd-di-4-threads`.
fn name(what: &record::Subject) -> String {
    let vm = what.vm.iter().map(|vm| format!("-{vm}"));
    let name = format!(
        "profile-{}-{}{}-{}-{}",
        what.workload,
        what.on,
        vm.collect::<String>(),
        what.tasks,
        what.mode.name()
    );
    // A workload of the user's own may be called anything.
    name.replace(['/', '\0'], "_")
}

/// The place of the pictures.
enum Place {
    /// The place that the user names.
    Named(PathBuf),
    /// Into a directory of their own.
    New,
    Nowhere,
}

impl Place {
    /// The requested place; an error if it cannot be written, before anything is measured.
    fn of(named: Option<&Path>, json: bool) -> Result<Self, Failure> {
        let place = match named {
            Some(path) => Place::Named(path.to_owned()),
            None if json => Place::Nowhere,
            None => Place::New,
        };
        match &place {
            Place::Named(path) => file::check_directory(path)?,
            Place::New => file::check_directory(Path::new("."))?,
            Place::Nowhere => {}
        }
        Ok(place)
    }

    /// The directory, which is there now; `name` is its name if the user gave none.
    fn make(self, name: impl FnOnce() -> String) -> Result<Option<PathBuf>, Failure> {
        match self {
            Place::Nowhere => Ok(None),
            Place::New => file::new_directory(&name()).map(Some),
            Place::Named(path) => {
                fs::create_dir_all(&path).map_err(Failure::file(&path))?;
                Ok(Some(path))
            }
        }
    }
}
