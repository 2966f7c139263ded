//! What tasks lose by waiting, found by delays: as a table and as JSON.

use super::table::{align_right, with_header};
use super::whatif::factor;
use super::{format, percent, short, time};
use bench::{Delayed, Delays};
use serde_json::json;

/// Prints a row for each delay, and the gain.
pub fn print(question: &Delays<'_>, answer: &Delayed) {
    let plan = &question.plan;
    println!(
        "{} ({}) on {}, by delays: {} {} a second",
        plan.workload.name(),
        plan.mode.count(plan.tasks),
        question.system.on().name(),
        short(answer.rate(0)),
        plan.workload.unit()
    );
    let mut table = with_header(["delay", "a second", "response", "hidden"]);
    for (at, &delay) in answer.delays.iter().enumerate() {
        let hidden = match delay {
            0 => "–".to_owned(),
            _ => percent(answer.hidden(at)),
        };
        table.add_row([
            nanoseconds(delay as f64),
            short(answer.rate(at)),
            nanoseconds(answer.response(at)),
            hidden,
        ]);
    }
    table.add_row([
        "one task".to_owned(),
        short(1e9 / answer.alone()),
        nanoseconds(answer.alone()),
        "–".to_owned(),
    ]);
    align_right(&mut table, 0..4);
    format::print(&table);
    match answer.gain() {
        Some(gain) if gain.low <= 1.0 && gain.high >= 1.0 => println!(
            "if no task waited for another: × {}–{}, no gain that differs from none",
            factor(gain.low),
            factor(gain.high)
        ),
        Some(gain) => println!(
            "if no task waited for another: × {} ({}–{}), so no lock's waits cost more",
            factor(gain.median),
            factor(gain.low),
            factor(gain.high)
        ),
        None => println!(
            "if no task waited for another: the rates are too noisy to tell (see `scalevm doctor`)"
        ),
    }
}

fn nanoseconds(time_in: f64) -> String {
    time(time_in / 1e9)
}

/// Prints a line for each delay, and one for the gain.
pub fn print_json(question: &Delays<'_>, answer: &Delayed) {
    let plan = &question.plan;
    for (at, &delay) in answer.delays.iter().enumerate() {
        let line = json!({
            "kind": "delay",
            "delay": delay as f64 / 1e9,
            "rate": answer.rate(at),
            "response": answer.response(at) / 1e9,
            "hidden": (delay > 0).then(|| answer.hidden(at)),
        });
        println!("{line}");
    }
    let gain = answer.gain().map(|gain| {
        json!({ "median": gain.median, "low": gain.low, "high": gain.high, "level": gain.level })
    });
    let line = json!({
        "kind": "delays",
        "workload": plan.workload.name(),
        "mode": plan.mode.name(),
        "on": question.system.on().name(),
        "vm": question.system.subject(plan).vm,
        "profile": question.system.subject(plan).profile,
        "topology": question.system.subject(plan).topology,
        "tasks": plan.tasks,
        "alone": answer.alone() / 1e9,
        "gain": gain,
    });
    println!("{line}");
}
