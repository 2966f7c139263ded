//! `check conflicts`.
use crate::cli::ConflictsArgs;
use crate::harness::Failure;
/// Checks.
pub fn run(_args: &ConflictsArgs) -> Result<u8, Failure> {
    Ok(0)
}
