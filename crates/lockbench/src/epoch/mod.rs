//! Reclamation: sections, waiting, callbacks, protected objects; `sync`'s epochs and hazard
//! pointers, and the nearest equivalents of other libraries.

pub mod crossbeam;
pub mod haphazard;
pub mod hazard;
pub mod ours;
pub mod seize;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sync::Padded;

/// Counts callbacks that have run. Never freed (128 bytes a subject): a library may run
/// callbacks as late as it likes.
type Done = &'static Padded<AtomicU64>;

fn done() -> Done {
    Box::leak(Box::default())
}

/// Fails unless each callback has run.
fn all_ran(done: Done, operations: u64) -> Result<(), String> {
    let ran = done.load(Relaxed);
    if ran == operations {
        Ok(())
    } else {
        Err(format!("{ran} of {operations} callbacks ran"))
    }
}
