//! The state of a campaign, as text.

use campaign::{Outcome, Plan, Results, Shard, State};
use stats::count;

/// Prints each point with its state.
pub fn list(plan: &Plan, results: &Results, shard: Shard) {
    for point in plan.points.iter().filter(|point| shard.has(point.number)) {
        let state = match results.state(point) {
            State::Done => "done",
            State::Failed(_) => "failed",
            State::Missing => "missing",
        };
        println!("{:>6}  {state:<7}  {}", point.number, point.argv.join(" "));
    }
}

/// The results of all points so far.
pub fn outcome(plan: &Plan, results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    for point in &plan.points {
        match results.state(point) {
            State::Done => outcome.done += 1,
            State::Failed(why) => outcome.failed.push((point.number, why)),
            State::Missing => outcome.failed.push((point.number, "was not run".into())),
        }
    }
    outcome
}

/// Prints the number of points that are done, and the reasons why others failed.
pub fn print(results: &Results, outcome: &Outcome) {
    for (number, why) in &outcome.failed {
        let why = why.replace('\n', "; ");
        eprintln!("scalevm: point {number} failed: {why}");
    }
    let failed = match outcome.failed.len() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let done = count(outcome.done, "point");
    let place = results.directory().display();
    // Results may go to stdout.
    eprintln!("scalevm: {done} done{failed}; results are in {place}");
}
