//! `scalevm incident`: real programs whose memory operations did not scale.

use crate::cli::{CommonArgs, IncidentCommand, IncidentRunArgs, TaskArgs};
use crate::output::progress::{self, Progress};
use crate::output::{format, incident, json};
use bench::profiling::Subject;
use bench::{Failure, On, Schedule, System, interrupt};
use profile::Profile;
use stats::Exit;
use std::path::Path;
use std::time::Duration;
use studies::incidents::{self, Findings, Incident, Run, Setting};

/// Runs of a program on this computer; the one in the middle counts.
const ROUNDS: u32 = 5;
/// How an incident is watched on this computer.
const WATCHED: Schedule = Schedule {
    warmup: 1,
    samples: 1,
    duration: Duration::from_millis(500),
};

/// Lists, shows or runs incidents.
pub fn run(command: &IncidentCommand) -> Result<u8, Failure> {
    match command {
        IncidentCommand::List(args) => {
            format::choose(args.format.format);
            let all = incidents::all()?;
            if args.json {
                incident::list_json(&all)
            } else {
                incident::list(&all)
            }
            Ok(0)
        }
        IncidentCommand::Show(args) => {
            print!("{}", find(&args.incident)?.page);
            Ok(0)
        }
        IncidentCommand::Run(args) => run_all(args),
    }
}

/// Runs each and shows it at once. The exit code is 1 if one is not as it was told.
fn run_all(args: &IncidentRunArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let incidents = match args.incidents.as_slice() {
        [] => incidents::all()?,
        names => names
            .iter()
            .map(|name| find(name))
            .collect::<Result<_, _>>()?,
    };
    super::prepare()?;
    let mut hold = true;
    for one in &incidents {
        let findings = match args.on {
            On::Sim => simulated(one)?,
            on => here(one, on)?,
        };
        hold &= findings.hold();
        if args.json {
            incident::print_json(one, args.on, &findings)
        } else {
            incident::print(one, args.on, &findings)
        }
    }
    Ok(if hold { 0 } else { Exit::Regressed.code() })
}

/// The incident of this name, or the one in this folder.
fn find(name: &str) -> Result<Incident, Failure> {
    let known = incidents::all()?;
    let names: Vec<String> = known.iter().map(|one| one.name.clone()).collect();
    match known.into_iter().find(|one| one.name == name) {
        Some(found) => Ok(found),
        None if Path::new(name).is_dir() => Incident::open(Path::new(name)),
        None => Err(Failure::Unavailable(format!(
            "{name}: no such incident or folder; expected one of {}",
            names.join(", ")
        ))),
    }
}

fn simulated(incident: &Incident) -> Result<Findings<'_>, Failure> {
    let settings = incident.about.settings();
    let progress = Progress::new(settings.len() as u64, "runs");
    progress.point(&incident.name);
    let findings = incident.simulate(&progress);
    progress.finish();
    findings
}

/// Runs an incident on this computer, which is one machine, and under one preset.
fn here(incident: &Incident, on: On) -> Result<Findings<'_>, Failure> {
    let at = &incident.about.at;
    let tasks = TaskArgs {
        no_affinity: true,
        ..TaskArgs::default()
    };
    let common = CommonArgs {
        tasks,
        ..CommonArgs::default()
    };
    let system = super::system(on, Some(at.vm), &common)?;
    let is_here = |setting: &&Setting| (setting.vm, setting.place()) == (at.vm, at.place());
    let settings = incident.about.settings();
    let settings: Vec<&Setting> = settings.iter().filter(is_here).collect();
    let mut times = vec![Vec::new(); settings.len()];
    for round in 0..ROUNDS {
        for (setting, times) in settings.iter().zip(&mut times) {
            interrupt::check()?;
            let taken = system.target().complete(&incident.plan(setting), round)?;
            times.push(taken.real);
        }
    }
    let mut runs = Vec::new();
    for (setting, mut times) in settings.into_iter().zip(times) {
        times.sort_unstable();
        let seen = watched(&system, incident, setting)?;
        let longest = seen.locks.iter().map(|lock| lock.worst);
        let run = Run {
            real: times[times.len() / 2],
            wait: Duration::from_secs_f64(longest.fold(0.0, f64::max)),
            bottleneck: seen.bottleneck,
        };
        runs.push((setting.clone(), run));
    }
    Ok(incident.findings(&runs, false))
}

/// A profile of a setting on this computer.
fn watched(system: &System, incident: &Incident, setting: &Setting) -> Result<Profile, Failure> {
    let mut plan = incident.plan(setting);
    plan.count = None;
    let subject = Subject {
        system,
        plan,
        schedule: WATCHED,
        options: perf::Options::default(),
        machine: json::machine,
        bars: progress::bar,
    };
    let seen = subject.profile()?;
    interrupt::check()?;
    Ok(seen.expect("only an interrupt ends it early"))
}
