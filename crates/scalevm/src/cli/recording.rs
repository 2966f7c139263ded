//! The command line of `recording`.

use super::FormatArgs;
use clap::Args;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The beginning of `recording --help`.
pub const LONG_ABOUT: &str = "\
Show what is in a recording of a program's memory operations, or write a part of it

Threads of one role have the same name without its number, in processes with the same name; first
threads of processes are main. Their time is what they computed, what they slept for (a futex, a
pipe, poll, a child, a time, something else), what is quiet, after their last event, and the rest:
in the kernel, or ready to run.

With --text, a line for each event has the time in seconds, the thread, the nanoseconds that it
computed before, and the call: a mapping's number with an offset in it, the length in bytes, and the
result.";

/// `recording`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  What is in it:
    scalevm recording server.vmrec
  All that one thread unmapped:
    scalevm recording server.vmrec --threads 3 -o three.vmrec
    scalevm recording three.vmrec --text
  Two seconds of the workers:
    scalevm recording server.vmrec --cut 10-12 --threads worker -o workers.vmrec

Exit codes: 0 done, 2 bad usage, or a file that is damaged or cannot be written.")]
pub struct RecordingArgs {
    /// The recording, e.g. server.vmrec
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print each event on a line of its own
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub text: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Write what happened between these seconds; mappings that existed before are in it
    #[arg(long, value_name = "FROM-TO", value_parser = seconds, requires = "output")]
    pub cut: Option<RangeInclusive<f64>>,
    /// Write what these threads did: by number (see --text), by name, or by role
    #[arg(
        long,
        value_name = "NAME|NUMBER,…",
        value_delimiter = ',',
        requires = "output"
    )]
    pub threads: Vec<String>,
    /// The file for the part of the recording
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "text", "format"])]
    pub output: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<RangeInclusive<f64>, String> {
    let ends = text
        .split_once('-')
        .map(|(from, to)| (from.parse(), to.parse()));
    match ends {
        Some((Ok(from), Ok(to))) if 0.0 <= from && from < to && to < 1e9 => Ok(from..=to),
        _ => Err("expected two times in seconds, e.g. 1.5-3".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn cuts_are_from_one_time_to_a_later_one() {
        assert_eq!(seconds("0-0.5"), Ok(0.0..=0.5));
        for bad in [
            "", "1", "1-", "-1", "2-1", "1-1", "a-b", "nan-1", "0-inf", "0-1-2",
        ] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
