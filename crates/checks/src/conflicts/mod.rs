//! Do operations that commute share cache lines?
//!
//! Operations commute if neither's result depends on their order. Then an implementation exists in
//! which they share no line that one of them writes, and scale (Clements et al., "The scalable
//! commutativity rule", SOSP 2013). For each pair this checks if the VM is such an implementation.
//! For the pairs for which it is known not to be (`known.rs`), the conflicts must be exactly those
//! that are listed.

mod commute;
mod examine;
mod known;
mod operation;
mod results;
mod taken;
mod tasks;

use baselines::Preset;
pub use commute::{Group, Pair};
use examine::examine;
pub use examine::{Conflict, Use};
pub use known::Compared;
pub use results::{Examined, Results};
pub use taken::Taken;

/// The lines in which a pair conflicts in the VM of `preset`, or in its system's kernel and
/// scheduler.
///
/// # Errors
/// If there is no memory for the simulated machine.
pub fn conflicts_of(preset: Preset, pair: &Pair) -> std::io::Result<Vec<Conflict>> {
    if let Some(operations) = pair.dialogues() {
        return tasks::examine(pair, operations, preset);
    }
    examine(pair, preset.options())
}
