//! The command lines of `calibrate` and `doctor`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use sim::profile::Profile;
use std::path::PathBuf;

/// `calibrate`.
#[derive(Args)]
pub struct CalibrateArgs {
    /// The profile's name
    #[arg(long, value_name = "NAME", default_value = "this-computer", value_parser = name)]
    pub name: String,
    /// The built-in machine that supplies the numbers this computer does not show
    #[arg(long, value_name = "MACHINE", default_value = NEAREST, value_parser = machines())]
    pub base: String,
    /// Write the profile there (default: to stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A tenth of the rounds: quicker and noisier
    #[arg(long)]
    pub quick: bool,
}

/// The beginning of `doctor --help`.
pub const DOCTOR_ABOUT: &str = "\
Check whether this computer is fit for measurements, and say what to change

One line for each thing looked at: `ok`; `unknown` if it cannot be seen from here; `advice`
if figures would be better or more would be seen after a change; `change` if figures from
here would be doubtful as it is. The command changes nothing itself. Exit code 3 if
something has to be changed, or cannot be seen and might have to be; else 0.";

/// `doctor`.
#[derive(Args)]
pub struct DoctorArgs {
    /// Print one JSON object a line
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
    PossibleValuesParser::new(Profile::names())
}

fn name(text: &str) -> Result<String, String> {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c));
    if text.is_empty() || text.contains(odd) {
        Err("a name may contain only letters, digits, `-`, `_` and `.`".into())
    } else {
        Ok(text.to_owned())
    }
}
