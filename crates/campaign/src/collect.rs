//! All results together.

use crate::{Error, Plan, Results, State};

/// The results of all points, in order: the same bytes however they were run; and the highest exit
/// code among them.
///
/// # Errors
/// A point has no result, or one that is damaged.
pub fn collect(plan: &Plan, results: &Results) -> Result<(Vec<u8>, u8), Error> {
    let missing = |point: &&_| results.state(point) != State::Done;
    let mut missing = plan.points.iter().filter(missing);
    if let Some(first) = missing.next() {
        return Err(Error::Missing {
            missing: 1 + missing.count(),
            all: plan.points.len(),
            first: first.number,
        });
    }
    let (mut all, mut highest) = (Vec::new(), 0);
    for point in &plan.points {
        let (bytes, exit) = results.read(point)?;
        all.extend(bytes);
        highest = highest.max(exit);
    }
    Ok((all, highest))
}
