//! The command line of `kernel`.

use super::preset;
use baselines::Preset;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The beginning of `kernel --help`.
pub const LONG_ABOUT: &str = "\
Run programs on scalevm's own kernel, under QEMU

Without a program, the terminal runs busybox's shell: Ctrl-C goes to the program in the guest;
`exit` ends the machine, as does Ctrl-A followed by x. With a program, a Linux executable for
x86-64, the machine runs it and ends; its output goes to standard output, and its exit code is the
command's. Ctrl-C ends the machine. A name without a slash is one of busybox's programs, or one in
/bin of --files. Programs are static, unless --root has their dynamic linker and libraries: then a
name is one of its programs, and so is a path that it has; others are this computer's. Standard
input that is not a terminal is read to its end before the machine starts.

The first use builds the kernel.";

/// The beginning of `kernel compare --help`.
const COMPARE_ABOUT: &str = "\
Measure operations on scalevm's kernel and on Linux

Both run the same static programs on the same emulated computer. Costs are the instructions of one
operation on one CPU, counted by QEMU: the same in each run. Rates are measured by the clock, on 1
and 2 CPUs that run in parallel, and are as noisy as this computer. An operation that fails has no
figure; the output gives the reason.";

/// `kernel`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = "\
Examples:
  A shell:
    scalevm kernel --cpus 2
  A static program, which finds a file of yours:
    scalevm kernel --files data -- ./program /input
  Debian's programs (crates/guests/root.sh makes such a folder):
    scalevm kernel --root target/root -- bash -c 'sort /etc/shells | head -3'

Exit codes: 2 bad usage or input, 4 the machine could not run, 125 the kernel panicked or the
machine stopped without giving a reason, 130 interrupted; all others are the program's.")]
pub struct KernelArgs {
    /// The command to run instead of a program
    #[command(subcommand)]
    pub instead: Option<KernelCommand>,
    /// Number of CPUs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=64)
    )]
    pub cpus: u32,
    /// Size of memory
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = memory)]
    pub memory: u64,
    /// The build of the VM in scalevm's kernel (see `scalevm list`)
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<Preset>,
    /// Use the system in DIR, as dpkg -x or debootstrap make it, in place of busybox
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Copy the contents of DIR into the guest's root directory
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Add a disk for swap space
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub swap: Option<u64>,
    /// Count instructions as time, so that each run is the same
    #[arg(long)]
    pub icount: bool,
    /// Report each unsupported system call once, on the console
    #[arg(long)]
    pub strict: bool,
    /// Wait for gdb on port 1234
    #[arg(long)]
    pub gdb: bool,
    /// Boot this Linux image instead of scalevm's kernel
    #[arg(long, value_name = "VMLINUZ", conflicts_with_all = ["vm", "swap", "strict"])]
    pub linux: Option<PathBuf>,
    /// A program and its arguments [default: a shell]
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// A command in place of running a program.
#[derive(Subcommand)]
pub enum KernelCommand {
    /// Measure operations on scalevm's kernel and on Linux
    #[command(long_about = COMPARE_ABOUT)]
    Compare(KernelCompareArgs),
}

/// `kernel compare`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  After crates/guests/linux.sh, the instructions of each operation:
    scalevm kernel compare --exact

Exit codes: 0 done, 2 bad usage or input, 4 a guest failed, 130 interrupted.")]
pub struct KernelCompareArgs {
    /// The Linux image [default: the one that crates/guests/linux.sh fetched]
    #[arg(long, value_name = "VMLINUZ")]
    pub linux: Option<PathBuf>,
    /// The build of the VM in scalevm's kernel (see `scalevm list`)
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<Preset>,
    /// Measure only costs, not rates
    #[arg(long)]
    pub exact: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: super::FormatArgs,
}

const MIB: u64 = 1 << 20;

fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes < 32 * MIB => Err("expected at least 32M of memory".into()),
        bytes => Ok(bytes),
    }
}

/// Bytes: a number, with or without K, M or G.
fn size(text: &str) -> Result<u64, String> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units.into_iter().find(|(unit, _)| text.ends_with(*unit));
    let digits = text.trim_end_matches(|c| unit.is_some_and(|(unit, _)| c == unit));
    let shift = unit.map_or(0, |(_, shift)| shift);
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| bytes.is_multiple_of(4096) && *bytes <= MIB * MIB)
        .ok_or_else(|| "expected a multiple of 4 KiB up to 1024G, e.g. 64M or 2G".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("8192"), Ok(8192));
        assert_eq!(size("4K"), Ok(4096));
        assert_eq!(size("2G"), Ok(2 << 30));
        for bad in [
            "",
            "M",
            "1",
            "0M",
            "-1M",
            "1T",
            "1.5G",
            "99999999999G",
            "18446744073709551615K",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(memory("32M"), Ok(32 * MIB));
        assert!(memory("16M").is_err());
    }
}
