//! The command line of `whatif`.

use super::{CommonArgs, ConditionArgs, FormatArgs, MachineArgs, RecordedArgs, TaskArgs};
use super::{WorkloadArgs, preset, seconds, system, tasks};
use baselines::Preset;
use bench::On;
use bench::simulated::Cause;
use clap::Args;
use std::time::Duration;

/// The beginning of `whatif --help`.
pub const LONG_ABOUT: &str = "\
Say what a workload would gain if a lock, a line or an interrupt cost nothing

A profile says how long tasks wait for a lock. That is not what a kernel without it would gain: the
next cause may be right behind. A simulated machine can do without a cause: a lock still excludes,
but waits for it and transfers of its line take no time; each CPU has a line when it needs it;
flushes of other CPUs' translations, zeroed pages, or going to sleep and waking cost nothing.

The first table takes away each cause by itself. The second is a ladder: each rung also does without
the largest cause that is left. The third has the presets of the same family, which are answers that
exist.

The kernel of this computer cannot do without a lock, but tasks can ask for it less: with --on os
each spends a delay outside of the kernel before each operation. As delays grow, queues empty, and
the time that an operation takes in the kernel falls to that of a task that waits for nobody. That
is the most that any lock can cost.";

/// The length of a run by default.
const DURATION: Duration = Duration::from_millis(2);

/// The length of a window without delays on a system that is not simulated, by default.
const REAL_DURATION: Duration = Duration::from_millis(50);

/// `whatif`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  What holds up page faults of threads on Linux 6.12 at 96 CPUs?
    scalevm whatif page_fault1 --threads --vm linux-6.12 -t 96
  For how many CPUs is it worth while?
    scalevm whatif mmap1 --vm freebsd-di --at 8,32,96
  Without two causes at once:
    scalevm whatif mmap1 --vm freebsd-di --without 'lock invl gen,line Di.globals'
  What do page faults of threads lose by waiting in the kernel of this computer?
    scalevm whatif page_fault1 --threads --on os

Exit codes: 0 done, 2 bad usage or input, 4 a run failed, 130 interrupted.")]
pub struct WhatIfArgs {
    /// The workload.
    #[command(flatten)]
    pub what: WorkloadArgs,
    /// How a recorded program is run.
    #[command(flatten)]
    pub recorded: RecordedArgs,
    /// The system to ask [default: sim]; others than sim are asked by delays
    #[arg(long, value_name = "SYSTEM", value_parser = system())]
    pub on: Option<On>,
    /// Ask a simulated machine by delays, too
    #[arg(long, conflicts_with_all = ["at", "without", "no_corners"])]
    pub delays: bool,
    /// Number of tasks [default: the most of --at, or the number of the machine's CPUs]
    #[arg(short, long, value_name = "N", value_parser = tasks())]
    pub tasks: Option<u32>,
    /// Numbers of tasks at which to show the gain [default: up to four powers of two, and N]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = tasks())]
    pub at: Vec<u32>,
    /// Do without these causes together: "lock NAME", "line NAME", flushes, memory, sleeping
    #[arg(long, value_name = "CAUSE,…", value_delimiter = ',')]
    pub without: Vec<Cause>,
    /// Do not repeat each variant at the extremes of the machine's unpublished properties
    #[arg(long)]
    pub no_corners: bool,
    /// The build of scalevm's own VM (see `scalevm list`) [default: scalevm]
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<Preset>,
    /// Tasks are threads in one address space (default: processes)
    #[arg(long)]
    pub threads: bool,
    /// Length of each run [default: 0.002; others than sim: 0.05]; longer if one task alone needs
    /// more for 20 operations, up to 0.04. What ends an iteration may be missing from a shorter one
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub machine: MachineArgs,
    /// The conditions of simulated runs.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub conditions: ConditionArgs,
}

impl WhatIfArgs {
    /// The system to ask.
    fn on(&self) -> On {
        self.on.unwrap_or(On::Sim)
    }

    /// The first option given that takes something away.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--at", !self.at.is_empty()),
            ("--without", !self.without.is_empty()),
            ("--no-corners", self.no_corners),
            ("--delays", self.delays),
        ];
        given.into_iter().find(|one| one.1).map(|one| one.0)
    }

    /// The same in the terms of `run`.
    pub fn common(&self) -> CommonArgs {
        CommonArgs {
            tasks: TaskArgs {
                threads: self.threads,
                on: Some(self.on()),
                ..TaskArgs::default()
            },
            // Whole iterations of many tasks take minutes and gigabytes in each of some fifty runs.
            duration: Some(self.duration.unwrap_or(match self.on() {
                On::Sim => DURATION,
                _ => REAL_DURATION,
            })),
            json: self.json,
            sim: self.machine.clone().into(),
            conditions: self.conditions,
            ..CommonArgs::default()
        }
    }
}
