//! The lateness of a film's frames, as text and as JSON.

use bench::{Lateness, Plan};
use serde_json::json;
use stats::record::Subject;
use std::time::Duration;

/// Prints it in a few lines, times in milliseconds.
pub fn print(plan: &Plan, late: &Lateness) {
    let others = plan.tasks - 1;
    println!("testcase:a film during {others} × {}", plan.workload.name());
    let frame = 1e3 * seconds(Duration::from_nanos(workloads::PERIOD));
    let alone = 1e3 * seconds(late.idle);
    println!("alone a frame takes {alone:.3} ms of {frame:.3}");
    let [median, most, worst] = [late.median, late.most, late.worst].map(|by| 1e3 * seconds(by));
    println!("late by median:{median:.3} 99th:{most:.3} worst:{worst:.3} ms");
    println!("frames:{} dropped:{}", late.frames, late.dropped);
}

/// Prints an object of JSON, times in seconds.
pub fn print_json(subject: &Subject, late: &Lateness) {
    let mut line = json!(subject);
    line["kind"] = json!("latency");
    line["unit"] = json!("s");
    let times = [
        ("idle", late.idle),
        ("median", late.median),
        ("p99", late.most),
        ("worst", late.worst),
    ];
    for (name, time) in times {
        line[name] = json!(seconds(time));
    }
    line["frames"] = json!(late.frames);
    line["dropped"] = json!(late.dropped);
    println!("{line}");
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
