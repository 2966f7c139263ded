//! The command line of `profile`.

use super::{CommonArgs, RecordedArgs, WorkloadArgs, preset, tasks};
use crate::output::profile::View;
use baselines::Preset;
use bench::{On, Schedule};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use perf::{Cgroup, Whom};
use profile::By;
use std::path::PathBuf;
use std::time::Duration;

pub const LONG_ABOUT: &str = "\
Show where time goes: flame graphs, locks, the bottleneck

The output has busy stacks as a flame graph, waits as another, the locks that tasks waited for with
their callers, and one sentence that names the bottleneck.

--pid, --cgroup and --all watch programs that already run, in one recording that leaves them
alone: until Ctrl-C, for --duration seconds, or until all of them have ended. Processes and threads
that come and go are followed.

A workload runs unwatched, for its rate, then watched, and unwatched again. On os, scalevm samples
busy cycles and records the kernel's lock tracepoints on all CPUs, which needs root (or
CAP_PERFMON). Without it, the profile shows what it can see and says that the rest is unknown.
Kernel writers that spin before the tracepoints see them wait are counted from the samples, in a
column of their own. On hosted and sim, scalevm's lock profile and the simulator's accounts say the
same; on kernel, the guest's kernel samples itself.

A command (--command) that takes longer than a sample (--duration, 1 second by default) is started
once and watched by time: until it ends, until Ctrl-C, or for --duration seconds. Then it gets
SIGTERM, and SIGKILL after 5 seconds. There is no rate then. -t starts it several times at once.

--read shows a profile that was written before, or a recording of the program perf. --diff compares
two of either: red costs more than before, blue costs less.";

/// KiB of a page, as rings count them.
const PAGE: u32 = 4;

/// `profile`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Why a program that runs is slow, until Ctrl-C:
    scalevm profile --pid 4711
  A container or a service, for ten seconds:
    scalevm profile --cgroup system.slice/redis.service --duration 10
  The bottleneck of four threads:
    scalevm profile mmap1 --threads -t 4
  A server, for ten seconds from its start:
    scalevm profile --command './server --port 8080' --duration 10
  What a change did:
    scalevm profile --diff before after
  What `perf record -a -g` has recorded, or the text of `perf script`:
    scalevm profile --read perf.data

Exit codes: 0 done, 2 bad usage or input, 4 a task failed, 130 interrupted. Ctrl-C is the normal end
of watching by time, unless --duration names another.")]
pub struct ProfileArgs {
    /// The workload to profile.
    #[command(flatten)]
    pub what: Option<WorkloadArgs>,
    /// How a recorded program is run.
    #[command(flatten)]
    pub recorded: RecordedArgs,
    /// The processes that already run.
    #[command(flatten)]
    pub attached: AttachedArgs,
    /// Number of tasks [default: 1]
    #[arg(short, long, value_name = "N", value_parser = tasks())]
    pub tasks: Option<u32>,
    /// The build of scalevm's own VM (see `scalevm list`); implies `--on hosted` without --on
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<Preset>,
    /// Samples per second of each busy CPU [default: 997]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub frequency: Option<u32>,
    /// KiB of the kernel's ring for each CPU, rounded up to a power of two; a full ring loses
    /// events [default: 2048]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    pub ring: Option<u32>,
    /// Break the tasks' time down by these, one table each
    #[arg(
        long,
        value_name = "WHAT,…",
        value_delimiter = ',',
        value_parser = by(),
        default_value = By::Call.name()
    )]
    pub by: Vec<By>,
    /// The most rows of a table, or `all`, with those that are too small to show otherwise
    #[arg(long, value_name = "N", value_parser = rows, default_value = "15")]
    pub rows: Rows,
    /// Show a profile: a directory that `profile` wrote, a file of its JSON, a perf.data, or what
    /// `perf script` prints of one, possibly compressed by gzip
    #[arg(long, value_name = "FILE", group = "WorkloadArgs")]
    pub read: Option<PathBuf>,
    /// Compare two profiles of any form that --read takes
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], group = "WorkloadArgs")]
    pub diff: Vec<PathBuf>,
    /// The directory for flame graphs and stacks [default: a new
    /// profile-WORKLOAD-SYSTEM-N-threads or -processes, or e.g. profile-process-4711-redis-server;
    /// with --json, none]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The rest.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Processes that already run.
#[derive(Args)]
pub struct AttachedArgs {
    /// Watch these processes, which already run, and all that they start
    #[arg(
        long,
        value_name = "PID,…",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..),
        group = "WorkloadArgs"
    )]
    pub pid: Vec<u32>,
    /// Watch the processes of a control group, and of all groups below it: a path below
    /// /sys/fs/cgroup, e.g. system.slice/redis.service, the last name in it, e.g. redis, or the
    /// name of a container of docker, podman or nerdctl
    #[arg(long, value_name = "GROUP", group = "WorkloadArgs")]
    pub cgroup: Option<PathBuf>,
    /// Watch all processes of this computer
    #[arg(long, group = "WorkloadArgs")]
    pub all: bool,
}

/// The most rows of a table; none for all.
#[derive(Clone, Copy, Debug)]
pub struct Rows(pub Option<usize>);

fn rows(text: &str) -> Result<Rows, String> {
    match text.parse() {
        _ if text == "all" => Ok(Rows(None)),
        Ok(0) | Err(_) => Err("expected a number of rows, or `all`".to_owned()),
        Ok(most) => Ok(Rows(Some(most))),
    }
}

fn by() -> impl TypedValueParser<Value = By> {
    let names = By::ALL.map(By::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let by = By::ALL.into_iter().find(|by| by.name() == name);
        by.ok_or("no such breakdown")
    })
}

impl AttachedArgs {
    /// The processes; none if no option names any.
    pub fn whom(&self) -> Result<Option<Whom>, perf::Error> {
        Ok(match (self.pid.as_slice(), &self.cgroup) {
            ([], None) => self.all.then_some(Whom::All),
            ([], Some(path)) => Some(Whom::Group(Cgroup::find(path)?)),
            (pids, _) => Some(Whom::Processes(pids.to_vec())),
        })
    }
}

impl ProfileArgs {
    /// The first option given that only a recording has a use for.
    pub fn of_recording(&self) -> Option<&'static str> {
        let all = [
            ("--frequency", self.frequency.is_some()),
            ("--ring", self.ring.is_some()),
            ("--duration", self.common.duration.is_some()),
        ];
        let given = all.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option).or(self.of_a_workload())
    }

    /// The first option given that only a workload has a use for.
    pub fn of_a_workload(&self) -> Option<&'static str> {
        let common = &self.common;
        let tasks = &common.tasks;
        let all = [
            ("--tasks", self.tasks.is_some()),
            ("--vm", self.vm.is_some()),
            ("--samples", common.samples.is_some()),
            ("--warmup", common.warmup.is_some()),
            ("--label", common.keep.label.is_some()),
            ("--processes", tasks.processes),
            ("--threads", tasks.threads),
            ("--on", tasks.on.is_some()),
            ("--smt", tasks.smt),
            ("--no-affinity", tasks.no_affinity),
            ("--hosted-cpus", tasks.hosted_cpus.is_some()),
        ];
        let given = all.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option).or(common.simulated())
    }

    /// What is shown of the profile.
    pub fn view(&self) -> View {
        View {
            by: self.by.clone(),
            rows: self.rows.0,
        }
    }

    /// The options of the recording.
    pub fn options(&self) -> perf::Options {
        let default = perf::Options::default();
        let pages = |ring: u32| ring.div_ceil(PAGE) as usize;
        perf::Options {
            frequency: self.frequency.unwrap_or(default.frequency),
            ring_pages: self.ring.map_or(default.ring_pages, pages),
            ..default
        }
    }

    /// The schedule of the run, unwatched and watched each.
    pub fn schedule(&self, on: On) -> Schedule {
        watching(&self.common, on)
    }
}

/// As [`CommonArgs::schedule`], with shorter defaults: stacks are seen sooner than rates.
pub fn watching(common: &CommonArgs, on: On) -> Schedule {
    let schedule = common.schedule(on);
    let real = on != On::Sim;
    Schedule {
        warmup: common.warmup.unwrap_or(u32::from(real)),
        samples: common.samples.unwrap_or(if real { 3 } else { 1 }).max(1),
        duration: if real {
            common.duration.unwrap_or(Duration::from_secs(1))
        } else {
            schedule.duration
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn rings_are_as_large_as_is_said() {
        let pages = |option: &str| {
            let words = format!("scalevm profile mmap1 {option}");
            let cli = Cli::try_parse_from(words.split_whitespace()).ok()?;
            match cli.command {
                Some(Command::Profile(args)) => Some(args.options().ring_pages),
                _ => None,
            }
        };
        // As the help says.
        assert_eq!(pages(""), Some(2048 / 4));
        assert_eq!(perf::Options::default().frequency, 997);
        assert_eq!(pages("--ring 8192"), Some(2048));
        assert_eq!(pages("--ring 5"), Some(2));
        assert_eq!((pages("--ring 0"), pages("--ring -1")), (None, None));
    }
}
