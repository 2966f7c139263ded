//! The command line of `record`.

use super::profile::AttachedArgs;
use super::seconds;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub const LONG_ABOUT: &str = "\
Record the memory operations of a program, to replay them elsewhere

The recording has what each thread did: calls such as mmap, munmap and madvise, page faults, the
time that it computed between them, births and ends of threads and processes, and which thread woke
which. It has no content of memory or files. It ends with the last of the recorded processes, after
--duration seconds, or with Ctrl-C; a command that still runs then gets SIGTERM, and SIGKILL after 5
seconds.

It needs root (or CAP_PERFMON), and a kernel with the tracepoints of system calls and page faults.
The last line says what was lost, and how much longer a loop of memory calls takes while it is
recorded.";

/// `record`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  A command, from its start to its end, in sort.vmrec:
    scalevm record -- sort -n big.txt
  A server that runs, for ten seconds:
    scalevm record --pid 4711 --duration 10 -o redis.vmrec
  A service or a container, until Ctrl-C, without names of files:
    scalevm record --cgroup system.slice/redis.service --anonymous

Exit codes: 0 done, 2 bad usage or input, 4 the command or the recording failed, 130 interrupted.
Ctrl-C is the normal end unless --duration names another.")]
pub struct RecordArgs {
    /// The command to record, and its arguments
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "WorkloadArgs",
        conflicts_with = "WorkloadArgs"
    )]
    pub command: Vec<OsString>,
    /// The processes that already run.
    #[command(flatten)]
    pub attached: AttachedArgs,
    /// The file to write [default: COMMAND.vmrec, PID.vmrec, or the last name of the control group]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// End after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Record also who else locks the program's memory for reading, such as a monitor that reads
    /// /proc/PID/smaps; it makes memory calls slower
    #[arg(long)]
    pub foreign: bool,
    /// Leave the names of files out
    #[arg(long)]
    pub anonymous: bool,
}
