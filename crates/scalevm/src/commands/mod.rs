//! One file per command.

pub mod calibrate;
pub mod campaign;
pub mod check;
pub mod compare;
pub mod doctor;
pub mod history;
pub mod incident;
pub mod kernel;
pub mod latency;
pub mod list;
pub mod locks;
pub mod man;
pub mod predict;
pub mod profile;
pub mod record;
pub mod recording;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod story;
pub mod sweep;
pub mod top;
pub mod whatif;

use crate::cli::{Choice, CommonArgs, HostArgs, RecordedArgs, WorkloadArgs, affinity};
use baselines::Preset;
use bench::kernel::GuestKernel;
use bench::os::Os;
use bench::ours::Ours;
use bench::own::host::Inherited;
use bench::own::{self, Opened, Setting};
use bench::simulated::Simulated;
use bench::tasks::places;
use bench::{Body, Failure, Job, On, Plan, Recorded, Schedule, System, interrupt, needs_os};
use stats::environment::{Environment, LOAD_WINDOW, LoadMeter};
use stats::record::Subject;
use stats::{Exit, count};
use std::path::Path;
use std::time::Duration;

/// A failure in one line, with its causes: each that the line so far does not name already.
pub fn explained(failure: &Failure) -> String {
    let mut line = failure.to_string();
    let mut cause = std::error::Error::source(failure);
    while let Some(error) = cause {
        let why = error.to_string();
        if !line.contains(&why) {
            line += &format!(": {why}");
        }
        cause = error.source();
    }
    line
}

/// Sets up the signal handler that measuring commands share.
fn prepare() -> Result<(), Failure> {
    interrupt::install().map_err(Failure::start("signal handler"))
}

/// The system to run on: the requested one, or scalevm's VM if one of its presets is named.
fn on(args: &CommonArgs, preset_named: bool) -> Result<On, Failure> {
    let on = match args.tasks.on {
        Some(On::Os) if preset_named => {
            return Err(Failure::Unavailable(
                "--vm selects a build of scalevm's own VM and conflicts with --on os".into(),
            ));
        }
        Some(on) => on,
        None if args.sim.machine.is_chosen() => On::Sim,
        None if preset_named || args.tasks.hosted_cpus.is_some() => On::Hosted,
        None => On::Os,
    };
    simulated_only(args.simulated(), on == On::Sim)?;
    hosted_only(args, on == On::Hosted)?;
    Ok(on)
}

/// The system of that kind, with scalevm's VM as `vm` builds it.
fn system(on: On, vm: Option<Preset>, args: &CommonArgs) -> Result<System, Failure> {
    let preset = vm.unwrap_or(Preset::SCALEVM);
    let affinity = args.affinity();
    Ok(match on {
        On::Os => System::Os(Os { affinity }),
        On::Hosted => System::Hosted(Ours {
            preset,
            affinity,
            cpus: args.tasks.hosted_cpus.map(|cpus| cpus as usize),
        }),
        On::Kernel => System::Kernel(GuestKernel::new(preset, affinity)?),
        On::Sim => {
            let (profile, seed) = (args.sim.machine.profile()?, args.sim.machine.first_seed());
            System::Sim(Box::new(Simulated {
                conditions: args.conditions(),
                ..Simulated::new(preset, profile, seed)
            }))
        }
    })
}

/// Fits a simulated machine to the rate of one task, if there is one.
fn fit(system: &mut System, plan: &Plan, args: &CommonArgs) -> Result<(), Failure> {
    let (System::Sim(target), Some(rate)) = (system, args.conditions.alone) else {
        return Ok(());
    };
    let alone = Plan { tasks: 1, ..*plan };
    let (fitted, what, time) = target.fitted(&alone, args.schedule(On::Sim).duration, rate)?;
    eprintln!(
        "scalevm: {}: {} takes {time:.0} ns, fitted to {rate} operations a second of one task",
        target.preset.name,
        what.name()
    );
    **target = fitted;
    Ok(())
}

/// The schedule of measurements of `plan` on `system`.
fn schedule(system: &System, plan: &Plan, args: &CommonArgs) -> Result<Schedule, Failure> {
    let mut schedule = args.schedule(system.on());
    if let Some(simulated) = system.simulated() {
        schedule.duration = simulated.window(plan, schedule.duration)?;
    }
    Ok(schedule)
}

/// Numbers of tasks up to `most`: the powers of two below it, and itself.
fn up_to(most: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |n| Some(2 * n));
    powers.take_while(|&n| n < most).chain([most]).collect()
}

/// Refuses options of the simulation where nothing is simulated.
fn simulated_only(given: Option<&str>, simulated: bool) -> Result<(), Failure> {
    match given {
        Some(option) if !simulated => Err(Failure::Unavailable(format!(
            "{option} applies only to simulation; add --on sim"
        ))),
        _ => Ok(()),
    }
}

/// Refuses threads for tasks that are not dealt out here.
fn hosted_only(args: &CommonArgs, hosted: bool) -> Result<(), Failure> {
    match args.tasks.hosted_cpus {
        Some(_) if !hosted => Err(Failure::Unavailable(
            "--hosted-cpus applies only to scalevm's own VM on threads; add --on hosted".into(),
        )),
        _ => Ok(()),
    }
}

/// The user's workload, to run on `on`.
fn workload(args: &WorkloadArgs, how: &RecordedArgs, on: On) -> Result<Opened, Failure> {
    match (&args.workload, &args.command) {
        (Some(choice), _) => chosen(choice, how, on),
        (None, Some(_)) if on != On::Os => Err(needs_os("--command")),
        (None, Some(command)) => own::repeat(command),
        (None, None) => Err(Failure::Unavailable(
            "expected a workload, e.g. mmap1 (see `scalevm list`)".into(),
        )),
    }
}

fn chosen(choice: &Choice, how: &RecordedArgs, on: On) -> Result<Opened, Failure> {
    let given = how.role.as_ref().map(|_| "--role");
    let given = given.or(how.beside.as_ref().map(|_| "--beside"));
    match choice {
        Choice::Recording(file) => {
            let program = Recorded::open(file, how.beside.as_deref(), how.role.as_deref())?;
            let left_out = program.left_out();
            if left_out.calls + left_out.faults + left_out.holds > 0 {
                eprintln!("scalevm: note: {}: {left_out}", program.name);
            }
            Ok(Job::from(program).into())
        }
        _ if given.is_some() => Err(Failure::Unavailable(format!(
            "{} applies only to a recorded program (.vmrec)",
            given.unwrap_or_default()
        ))),
        Choice::Known(workload) => Ok(Job::Known(workload).into()),
        Choice::File(file) if !matches!(on, On::Os | On::Kernel) => {
            Err(needs_os(&file.display().to_string()))
        }
        Choice::File(file) => own::open(file),
    }
}

/// Prints a note, once, if the tasks of `plan` have to share CPUs. How many threads of a recorded
/// program run at a time is the program's affair.
fn tell_if_crowded(system: &System, plan: &Plan) {
    if let Job::Recorded(..) = plan.workload {
        return;
    }
    let subject = system.subject(plan);
    let Subject {
        scheduler: Some(scheduler),
        topology,
        cpus,
        ..
    } = &subject
    else {
        return warn_if_crowded(system.on(), plan.tasks);
    };
    let shared = match (topology, cpus) {
        (Some(topology), _) => format!("the CPUs of {topology}"),
        (None, cpus) => {
            let cpus = cpus.unwrap_or(1) as usize;
            warn_if_crowded(system.on(), cpus);
            count(cpus, "thread")
        }
    };
    eprintln!(
        "scalevm: note: {} tasks share {shared} under the scheduler \"{scheduler}\"",
        plan.tasks
    );
}

/// Prints a note, once, if `tasks` have to share this computer's CPUs.
fn warn_if_crowded(on: On, tasks: usize) {
    if on == On::Sim {
        return;
    }
    let Ok(cpus) = places::cpus() else {
        return;
    };
    if tasks > cpus {
        let cpus = count(cpus, "CPU");
        eprintln!("scalevm: warning: {tasks} tasks will share {cpus}");
    }
}

/// Watches the load of other processes on this computer before a measurement that takes a while,
/// and warns if it is high: uses `machine` if the load has been watched already.
fn warn_if_noisy(span: Duration, machine: Option<&Environment>) {
    if span < WORTH_A_LOOK {
        return;
    }
    let load = match machine {
        Some(machine) => machine.load_before,
        None => LoadMeter::start(Path::new("/")).ok().and_then(|meter| {
            interrupt::sleep(LOAD_WINDOW);
            meter.finish().ok()
        }),
    };
    if let Some(load) = load.filter(|load| !load.quiet()) {
        eprintln!(
            "scalevm: warning: others use {:.2} and the hypervisor takes {:.2} of {}: figures will \
             be noisy (see `scalevm doctor`)",
            load.foreign,
            load.steal,
            count(load.cpus, "CPU")
        );
    }
}

/// A shorter measurement is a trial, whose figures do not matter.
const WORTH_A_LOOK: Duration = Duration::from_secs(1);

/// The exit code after a measurement: 128 + signal if a signal cut it short.
fn finished() -> u8 {
    interrupt::pending().map_or(0, |signal| 128 + signal)
}

/// The exit code after watching what has no end of its own: Ctrl-C is the normal one unless the
/// user named another.
fn watched(has_end: bool) -> u8 {
    match interrupt::pending() {
        Some(signal) if !has_end && i32::from(signal) == libc::SIGINT => 0,
        _ => finished(),
    }
}

/// The exit code of a command that failed: 2 for a bad choice, 4 for a failed target.
pub fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Unavailable(_) | Failure::Input(_) | Failure::File { .. } => Exit::BadInput.code(),
        Failure::Recording(error) if error.is_input() => Exit::BadInput.code(),
        Failure::NotFitted(_) => Exit::Inconclusive.code(),
        Failure::Interrupted(signal) => 128 + signal,
        _ => Exit::TargetFailed.code(),
    }
}

/// `scalevm host`: becomes the process in which a workload of the user's own runs.
pub fn host(args: &HostArgs) -> ! {
    let body = match (&args.object, &args.command) {
        (Some(file), _) => Body::Object(file.clone()),
        // The command line asks for one of the two.
        (None, command) => Body::Command(command.clone().unwrap_or_default()),
    };
    let setting = Setting {
        body: &body,
        tasks: args.tasks,
        threads: args.threads,
        affinity: affinity(args.no_affinity, args.smt),
    };
    let inherited = Inherited {
        parent: args.parent,
        channel: args.channel,
        area: args.area,
    };
    own::host::run(&setting, &inherited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_causes_once() {
        let cause = || std::io::Error::other("no such CPU");
        let start = Failure::start("tasks")(cause());
        assert_eq!(explained(&start), "tasks: no such CPU");
        let proc = Failure::Recording(perf::Error::Proc(cause()));
        assert_eq!(explained(&proc), "recording needs /proc: no such CPU");
    }
}
