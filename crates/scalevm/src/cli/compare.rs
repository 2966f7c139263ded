//! The command line of `compare`.

use super::{
    Choice, CommonArgs, ConditionArgs, FormatArgs, KeepArgs, MachineArgs, TaskArgs, choice, cpus,
    seconds, system, tasks,
};
use bench::On;
use clap::Args;
use stats::ministat::{Column, Confidence, Options, Plot};
use std::time::Duration;

/// The beginning of `compare --help`.
pub const LONG_ABOUT: &str = "\
Compare result files, or interleaved runs of two systems or commands

  compare A.txt B.txt…           files with one number per line: ministat's report
  compare A.json B.json…         files that `run --json` or `sweep --json` wrote
  compare --workload W A B       two systems or presets (see `scalevm list`)
  compare --command 'A' 'B'      two shell commands, by how often each completes
  compare --self-test […]        one of these against itself: false alarms of this machine

Systems, presets and commands run in turn, A B A B …, and each run counts once: samples of one run
are not independent. The verdict on B against A is faster, slower, no difference shown (any
difference is below the minimum effect), or inconclusive (need about k more runs).";

/// `compare`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Two files of numbers, as ministat does:
    scalevm compare before.txt after.txt
  Two builds of scalevm's own VM, run in turn:
    scalevm compare --workload mmap1 -t 2 freebsd-di scalevm
  Two commands:
    scalevm compare --command 'gzip -1 <f' 'gzip -9 <f'

Exit codes: 0 the same or better, 1 slower, 2 bad usage or input, 3 inconclusive (self-test: too
many false alarms), 4 a task or command failed, 130 interrupted (the finished runs are judged).")]
pub struct CompareArgs {
    /// Two or more files; or two systems, presets or commands (one with --self-test)
    #[arg(value_name = "A B")]
    pub operands: Vec<String>,
    /// Compare systems or presets that run this workload
    #[arg(long, value_name = "WORKLOAD", value_parser = choice::parser())]
    pub workload: Option<Choice>,
    /// Compare shell commands
    #[arg(long, conflicts_with = "workload")]
    pub command: bool,
    /// Compare one operand with itself [default: os, running mmap1]
    #[arg(long)]
    pub self_test: bool,
    /// Runs of each side [default: 10; in each comparison of a self-test: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub runs: Option<u32>,
    /// Number of comparisons in a self-test
    #[arg(long, value_name = "N", default_value_t = 20, requires = "self_test",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub comparisons: u32,
    /// The smallest difference that matters [default: 1%; between simulated results 50%, as the
    /// model ranks only rates that differ by a factor of 1.5 or more]
    #[arg(long, value_name = "PERCENT", value_parser = percentage, allow_hyphen_values = true)]
    pub minimum_effect: Option<f64>,
    /// Treat each number in plain files as a separate run, and give a verdict
    #[arg(long, conflicts_with_all = ["command", "workload", "self_test"])]
    pub verdict: bool,
    /// Treat the numbers in plain files as times or costs: lower is better, and is called faster
    /// [default: numbers with a unit of time, such as 1.5ms]
    #[arg(long, conflicts_with_all = ["command", "workload", "self_test"])]
    pub lower_is_better: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Run this shell command before each run, or before each execution of a compared command,
    /// untimed. Given twice, the first is for A and the second for B
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Vec<String>,
    /// Run this shell command after each run, as with --prepare
    #[arg(long, value_name = "COMMAND")]
    pub cleanup: Vec<String>,
    /// How runs are made.
    #[command(flatten, next_help_heading = "Runs")]
    pub measuring: MeasuringArgs,
    /// The parts of the numbers' table.
    #[command(flatten, next_help_heading = "As in ministat")]
    pub table: TableArgs,
}

/// How runs are made.
#[derive(Args)]
pub struct MeasuringArgs {
    /// Number of tasks
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = tasks(),
        conflicts_with = "command")]
    pub tasks: u32,
    /// The system to run all operands on; presets imply `hosted`
    #[arg(long, value_name = "SYSTEM", conflicts_with = "command", value_parser = system())]
    pub on: Option<On>,
    /// Tasks are processes, each with its own address space (default)
    #[arg(long, conflicts_with_all = ["threads", "command"])]
    pub processes: bool,
    /// Tasks are threads in one address space
    #[arg(long, conflicts_with = "command")]
    pub threads: bool,
    /// Intervals of each run to discard first; executions of a command before its first run
    /// [default: 1]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Length of each run [default: 1; simulated: 0.01]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Pin tasks to hardware threads (default: to cores)
    #[arg(short = 'm', long, conflicts_with = "command")]
    pub smt: bool,
    /// Do not pin tasks
    #[arg(long, conflicts_with_all = ["smt", "command"])]
    pub no_affinity: bool,
    /// On hosted, run more than N tasks on N threads, under the scheduler of the build (default:
    /// each task is a thread)
    #[arg(long, value_name = "N", conflicts_with = "command", value_parser = cpus())]
    pub hosted_cpus: Option<u32>,
    /// Where results are kept.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// The simulated machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// The conditions of simulated runs.
    #[command(flatten)]
    pub conditions: ConditionArgs,
}

/// Options of ministat, with its letters.
#[derive(Args)]
pub struct TableArgs {
    /// Confidence level in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(short, long, value_name = "LEVEL", default_value = "95")]
    pub confidence: Confidence,
    /// Column of the files that holds the numbers, counted from 1
    #[arg(short = 'C', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub column: u16,
    /// Characters that separate columns [default: space and tab]
    #[arg(
        short,
        long,
        value_name = "CHARS",
        hide_default_value = true,
        default_value = " \t"
    )]
    pub delimiters: String,
    /// Print only the table: no plot, no difference
    #[arg(short = 'n', long)]
    pub table_only: bool,
    /// Print no plot
    #[arg(short = 'A', long)]
    pub no_plot: bool,
    /// Draw each mean and deviation on a separate line of the plot
    #[arg(short, long)]
    pub separate: bool,
    /// Width of the plot in characters
    #[arg(short, long, value_name = "N", default_value_t = 74,
        value_parser = clap::value_parser!(u16).range(5..))]
    pub width: u16,
}

impl TableArgs {
    /// For ministat's report.
    pub fn options(&self) -> Options {
        let plot = Plot {
            width: self.width.into(),
            separate: self.separate,
        };
        Options {
            confidence: (!self.table_only).then_some(self.confidence),
            plot: (!self.table_only && !self.no_plot).then_some(plot),
        }
    }

    /// Where the numbers are.
    pub fn column(&self) -> Column {
        Column {
            number: self.column.into(),
            delimiters: self.delimiters.clone(),
        }
    }
}

impl MeasuringArgs {
    /// One run, in the terms of `run`: a single sample.
    pub fn common(&self) -> CommonArgs {
        CommonArgs {
            samples: Some(1),
            tasks: TaskArgs {
                processes: self.processes,
                threads: self.threads,
                on: self.on,
                smt: self.smt,
                no_affinity: self.no_affinity,
                hosted_cpus: self.hosted_cpus,
            },
            warmup: self.warmup.or(Some(1)),
            duration: self.duration,
            keep: self.keep.clone(),
            sim: self.machine.clone().into(),
            conditions: self.conditions,
            ..CommonArgs::default()
        }
    }
}

/// `5`, `1%` or `0.5%`, as a share. Without its sign, `0.05` may be meant as either.
pub(super) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim();
    let signed = number.len() < text.trim().len();
    match number.parse::<f64>() {
        Ok(share) if !signed && share > 0.0 && share < 1.0 => Err(format!(
            "ambiguous percentage: write {share}% or {}%",
            100.0 * share
        )),
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage from 0 to 1000, e.g. 1%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::percentage;

    #[test]
    fn percentages_need_their_sign_where_a_share_may_be_meant() {
        assert_eq!(percentage("1%"), Ok(0.01));
        assert_eq!(percentage("0.5 %"), Ok(0.005));
        assert_eq!(percentage("5"), Ok(0.05));
        assert_eq!(percentage("0"), Ok(0.0));
        for bad in ["0.01", "-1%", "-1", "nan%", "inf%", "%", ""] {
            assert!(percentage(bad).is_err(), "{bad}");
        }
    }
}
