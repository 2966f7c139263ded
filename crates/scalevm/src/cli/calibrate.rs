//! The arguments of `calibrate`.

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
    /// The built-in machine that says what this computer does not show
    #[arg(long, value_name = "MACHINE", default_value = NEAREST, value_parser = machines())]
    pub base: String,
    /// Write the profile there (default: to stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A tenth of the rounds: quicker and noisier
    #[arg(long)]
    pub quick: bool,
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
    match text.is_empty() || text.contains(odd) {
        true => Err("a name consists of letters, digits, `-`, `_` and `.`".into()),
        false => Ok(text.to_owned()),
    }
}
