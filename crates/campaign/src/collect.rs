//! All results in one file.

use crate::{Error, Plan, Results, State};
use std::io::Write;
use std::path::Path;

/// Writes the results of all points to `out`, in order: the same bytes however they were run. Returns the highest
/// exit code among them. `path` names `out` in errors.
///
/// # Errors
/// A point has no result, or one that is damaged, or `out` cannot be written.
pub fn collect(
    plan: &Plan,
    results: &Results,
    path: &Path,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let missing = |point: &&_| results.state(point) != State::Done;
    let mut missing = plan.points.iter().filter(missing);
    if let Some(first) = missing.next() {
        return Err(Error::Missing {
            missing: 1 + missing.count(),
            all: plan.points.len(),
            first: first.number,
        });
    }
    let mut highest = 0;
    for point in &plan.points {
        let (bytes, exit) = results.read(point)?;
        out.write_all(&bytes).map_err(Error::file(path))?;
        highest = highest.max(exit);
    }
    out.flush().map_err(Error::file(path))?;
    Ok(highest)
}
