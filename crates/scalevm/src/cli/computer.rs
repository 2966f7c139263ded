//! The command lines of `calibrate` and `doctor`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use sim::profile::MachineProfile;
use std::path::PathBuf;

/// `calibrate`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  A profile of this computer:
    scalevm calibrate --quick -o here.toml

Exit codes: 0 done, 2 bad usage or input, 4 a measurement failed, 130 interrupted.")]
pub struct CalibrateArgs {
    /// Name of the profile
    #[arg(long, value_name = "NAME", default_value = "this-computer", value_parser = name)]
    pub name: String,
    /// The built-in machine that supplies what cannot be measured on this computer
    #[arg(long, value_name = "MACHINE", default_value = NEAREST, value_parser = machines())]
    pub base: String,
    /// Write the profile to this file (default: to stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure a tenth of the rounds: quicker and noisier
    #[arg(long)]
    pub quick: bool,
}

/// The beginning of `doctor --help`.
pub const DOCTOR_ABOUT: &str = "\
Check whether this computer is fit for measurements, and say what to change

Prints one line for each property of the computer: `ok`; `unknown` if the command cannot see it;
`advice` if a change would improve figures or show more; `change` if figures would be doubtful
without a change. The command itself changes nothing.";

/// `doctor`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Before measuring:
    scalevm doctor

Exit codes: 0 fit, 2 bad usage, 3 a property needs a change, or cannot be seen and might need
one.")]
pub struct DoctorArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// The built-in machine most like one of this architecture.
const NEAREST: &str = if cfg!(target_arch = "aarch64") {
    "arm64-16"
} else {
    "freebsd-96"
};

fn machines() -> PossibleValuesParser {
    PossibleValuesParser::new(MachineProfile::names())
}

fn name(text: &str) -> Result<String, String> {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c));
    if text.is_empty() || text.contains(odd) {
        Err("expected a name of letters, digits, `-`, `_` and `.`, e.g. xeon-2s".into())
    } else {
        Ok(text.to_owned())
    }
}
