//! The arguments of `doctor`.

use clap::Args;

/// What `doctor --help` begins with.
pub const LONG_ABOUT: &str = "\
Say whether one can measure here, and what to change if not

One line for each thing looked at: `ok`; `advice` if figures would be better or more would
be seen after a change; `change` if figures from here would be doubtful as it is. Changes
nothing itself. Exit code 3 if something is to be changed, else 0.";

/// `doctor`.
#[derive(Args)]
pub struct DoctorArgs {
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}
