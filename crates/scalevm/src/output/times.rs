//! Times of runs with an end.

use bench::{Plan, Times};
use serde_json::json;
use stats::record::Subject;
use std::time::Duration;

/// Prints a line as time(1) of BSD does, with more digits: simulated runs are short.
pub fn print(times: &Times) {
    let [real, user, sys] = seconds(times);
    println!("{real:>14.6} real {user:>14.6} user {sys:>14.6} sys");
}

/// Prints the operations a second of all runs together.
pub fn print_rate(plan: &Plan, all: &[Times]) {
    let real: Duration = all.iter().map(|times| times.real).sum();
    let done = plan.count.unwrap_or(0) as f64 * all.len() as f64;
    if !real.is_zero() {
        let rate = done / real.as_secs_f64();
        println!("average:{rate:.1} {} a second", plan.workload.unit());
    }
}

/// Prints an object of JSON.
pub fn print_json(subject: &Subject, plan: &Plan, sample: u32, times: &Times) {
    let [real, user, sys] = seconds(times);
    let mut line = json!(subject);
    line["kind"] = json!("times");
    line["sample"] = json!(sample.saturating_add(1));
    line["count"] = json!(plan.count);
    line["unit"] = json!("s");
    for (name, value) in [("real", real), ("user", user), ("sys", sys)] {
        line[name] = json!(value);
    }
    if let Some(faults) = times.faults {
        line["faults"] = json!(faults);
    }
    println!("{line}");
}

fn seconds(times: &Times) -> [f64; 3] {
    [times.real, times.user, times.sys].map(|time| time.as_secs_f64())
}
