//! `scalevm locks`: the lock micro-benchmark.

mod hosted;
mod simulated;

pub use simulated::Figures;

use crate::cli::{LocksArgs, LocksOn};
use crate::harness::Failure;
use crate::locks::Row;
use crate::locks::registry::ROWS;

/// Measures and shows.
pub fn run(args: &LocksArgs) -> Result<u8, Failure> {
    let rows = chosen(&args.only);
    match args.on() {
        LocksOn::Hosted => hosted::run(args, &rows),
        LocksOn::Sim => simulated::run(args, &rows),
    }
}

/// The rows that `names` stand for, in the registry's order; all if there are none.
fn chosen(names: &[String]) -> Vec<&'static Row> {
    let named = |row: &&Row| {
        let mut names = names.iter();
        names.any(|name| name == row.name || name == row.group.name())
    };
    let rows = ROWS.iter();
    rows.filter(|row| names.is_empty() || named(row)).collect()
}
