//! Comparison of the operations with the model and the kernel.
//!
//! Sequences of the `oracle` crate are played on the VM and on other systems at the same time. The
//! first divergence is shortened and printed as a sequence that can be replayed.

mod planted;
mod search;

pub use planted::{
    bugs, careless, names as bug_names, neglects as neglect_names, search as search_planted,
};
pub use search::{Options, Watch, search};

use super::ours::quieten;
use oracle::check::{Divergence, Played, play};
use oracle::{Broken, Step, System};

/// A divergence, and the seed of the sequence that shows it.
pub type Found = (u64, Divergence);

/// The divergence of a sequence on `systems` and the model.
///
/// # Errors
/// If a system cannot be used any more.
pub fn replay(
    steps: &[Step],
    systems: &mut [&mut dyn System],
) -> Result<Result<Played, Divergence>, Broken> {
    prepare();
    play(steps, systems)
}

/// Switches on the check of the lock order; a violation ends the step, like any panic.
fn prepare() {
    sync::watch::order::switch(true);
    quieten();
}
