//! `scalevm profile`: where the time goes.

mod attached;
mod difference;
pub mod files;

use crate::cli::{ProfileArgs, WorkloadArgs};
use crate::output::profile::View;
use crate::output::{file, format, json, profile, progress};
use ::profile::Profile;
use bench::profiling::Subject;
use bench::{Failure, On, Plan};
use stats::record;
use stats::store::Writer;
use std::fs;
use std::path::{Path, PathBuf};

/// Profiles a run or processes that already run, or shows or compares profiles.
pub fn run(args: &ProfileArgs) -> Result<u8, Failure> {
    format::choose(args.common.format.format);
    if let [before, after] = args.diff.as_slice() {
        return difference::run(args, before, after);
    }
    if let Some(file) = &args.read {
        return read(args, file);
    }
    if let Some(whom) = args.attached.whom().map_err(Failure::Recording)? {
        return attached::run(args, whom);
    }
    match &args.what {
        Some(what) => one(args, what),
        None => unreachable!("the command line asks for one of these"),
    }
}

/// Shows a profile that was recorded before.
fn read(args: &ProfileArgs, file: &Path) -> Result<u8, Failure> {
    if let Some(option) = args.of_recording() {
        return Err(Failure::Unavailable(format!(
            "{option} applies only to what is recorded now, not to a file"
        )));
    }
    let results = Results::of(args)?;
    let seen = files::read(file)?;
    let heading = format!("{}, {:.1} s", files::title(&seen), seen.seconds);
    results.put(&heading, &seen)?;
    Ok(0)
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
    let workload = super::workload(what, &args.recorded, on)?;
    let tasks = args.tasks.unwrap_or(1) as usize;
    let plan = Plan::of(workload.job, tasks, common.mode(), None);
    super::fit(&mut system, &plan, common)?;
    super::tell_if_crowded(&system, &plan);
    let results = Results::of(args)?;
    let subject = Subject {
        system: &system,
        plan,
        schedule: args.schedule(on),
        options: args.options(),
        machine: json::machine,
        bars: progress::bar,
    };
    let mut heading = format!(
        "{} ({}), {} on {}",
        plan.workload.name(),
        plan.workload.description(),
        plan.mode.count(plan.width()),
        on.name()
    );
    if let Some(seen) = subject.once(common.duration)? {
        heading += &format!(", watched for {:.1} s", seen.seconds);
        results.put(&heading, &seen)?;
        return Ok(super::watched(common.duration.is_some()));
    }
    if let Some(seen) = subject.profile()? {
        results.put(&heading, &seen)?;
    }
    Ok(super::finished())
}

/// Where a profile goes.
struct Results {
    json: bool,
    view: View,
    directory: Place,
    store: Option<Writer>,
}

impl Results {
    /// The requested places; an error if one cannot be written, before anything is watched.
    fn of(args: &ProfileArgs) -> Result<Self, Failure> {
        let json = args.common.json;
        let store = args.common.keep.store.as_deref().map(Writer::create);
        Ok(Results {
            json,
            view: args.view(),
            directory: Place::of(args.out.as_deref(), json)?,
            store: store.transpose()?,
        })
    }

    /// Prints and keeps a profile.
    fn put(self, heading: &str, seen: &Profile) -> Result<(), Failure> {
        if self.json {
            println!("{}", files::line(seen))
        } else {
            profile::print(heading, seen, &self.view)
        }
        profile::notes(&seen.notes);
        if let Some(mut kept) = self.store {
            kept.append_aside(&files::line(seen))?;
            eprintln!("scalevm: kept in {}", kept.path().display());
        }
        if let Some(directory) = self.directory.make(|| name(&seen.subject))? {
            files::write(seen, &directory)?;
            eprintln!(
                "scalevm: flame graphs and stacks are in {}",
                directory.display()
            );
        }
        Ok(())
    }
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

/// The default directory of a profile: `profile-mmap1-hosted-freebsd-di-4-threads`,
/// `profile-process-4711-redis-server`.
fn name(what: &record::Subject) -> String {
    if what.already_ran() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        let words = what.workload.split(|c| !is_plain(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        return format!("profile-{}", words.join("-"));
    }
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
