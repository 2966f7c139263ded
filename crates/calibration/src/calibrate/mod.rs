//! This computer's costs, as a machine profile.
//!
//! Each step measures on threads pinned where it matters and gives a median of rounds. Figures that
//! this computer cannot show (another socket, the parts of a transfer) are those of a built-in
//! profile, and the source of each number says which it is.

mod computer;
mod instructions;
mod kernel;
mod mapping;
mod memory;
mod profile;
mod reading;
mod shootdown;
mod transfer;

pub use computer::Computer;
pub use profile::profile;
pub use reading::{Figure, Reading};

use bench::{Failure, interrupt};
use std::{io, thread};

type Step = fn(&Computer, usize) -> io::Result<Vec<Figure>>;

/// The steps, by their names in errors and in the progress bar.
const STEPS: &[(&str, Step)] = &[
    ("cache-line transfers", transfer::measure),
    ("instructions", instructions::measure),
    ("memory", memory::measure),
    ("kernel entries", kernel::entries),
    ("a switch", kernel::switch),
    ("block and wake", kernel::block_and_wake),
    ("shootdown", shootdown::measure),
];

/// The number of steps.
pub const COUNT: usize = STEPS.len();

/// Takes every step with medians of `rounds`, telling `each` its name first. Ends early if a
/// signal asks to.
pub fn measure(
    computer: &Computer,
    rounds: usize,
    mut each: impl FnMut(&str),
) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for &(name, step) in STEPS {
        if interrupt::pending().is_some() {
            break;
        }
        each(name);
        figures.extend(step(computer, rounds).map_err(Failure::start(name))?);
    }
    Ok(figures)
}

/// Runs `work` on a thread that never leaves `cpu`.
fn pinned<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<thread::JoinHandle<T>> {
    let place = [bench::tasks::Mask::of(&[cpu])];
    bench::tasks::born_at(&place, 0, || thread::Builder::new().spawn(work))
}

/// The result of a thread; a panic in it goes on here.
fn join<T>(thread: thread::JoinHandle<T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
