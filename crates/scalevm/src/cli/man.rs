//! The arguments of `man`.

use clap::Args;
use std::path::PathBuf;

/// `man`.
#[derive(Args)]
pub struct ManArgs {
    /// Write a page for each command there (default: the main page to stdout)
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
