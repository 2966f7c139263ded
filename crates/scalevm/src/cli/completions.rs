//! The arguments of `completions`.

use clap::Args;
use clap_complete::Shell;

/// `completions`.
#[derive(Args)]
pub struct CompletionsArgs {
    /// For which shell
    pub shell: Shell,
}
