//! Where a simulated run's time went, as tables and as JSON.

use super::format;
use super::table::{align_right, with_header};
use super::{percent, short};
use bench::Plan;
use bench::simulated::{Attribution, Share, Simulated};
use comfy_table::Table;
use serde_json::{Value, json};

/// Shares below this are not worth a row.
const SHOWN: f64 = 0.001;

/// A range of rates over the corners (the extremes of a machine's unpublished properties), in
/// words.
pub fn corners([low, high]: [f64; 2]) -> String {
    format!(
        "{}–{} over the extremes of one-way latency and arbitration",
        short(low),
        short(high)
    )
}

/// Prints the shares, the worst locks, their callers and the worst lines.
pub fn print(plan: &Plan, target: &Simulated, attribution: &Attribution, range: [f64; 2]) {
    let Attribution {
        lines_wait,
        spinning,
        interrupts,
        memory,
        blocked,
        queued,
        ..
    } = attribution;
    let queued = if target.is_scheduled(plan) {
        format!(", {} waiting for a CPU", percent(*queued))
    } else {
        String::new()
    };
    println!(
        "\nThe tasks' time: {} waiting for lines, {} spinning, {} in interrupts, {} waiting for \
         memory, {} blocked{queued}",
        percent(*lines_wait),
        percent(*spinning),
        percent(*interrupts),
        percent(*memory),
        percent(*blocked)
    );
    let kinds = [
        ("lock", "held", &attribution.locks),
        ("caller", "held", &attribution.callers),
        ("line", "moved", &attribution.lines),
    ];
    for (kind, hold, shares) in kinds {
        let shares: Vec<&Share> = shares.iter().filter(|one| one.cost() >= SHOWN).collect();
        if !shares.is_empty() {
            format::print(&table(kind, hold, &shares));
        }
    }
    println!("bottleneck: {}", attribution.bottleneck());
    let expected = target.expected(plan, attribution);
    println!("rate: {}; {expected}", corners(range));
}

fn table(kind: &str, hold: &str, shares: &[&Share]) -> Table {
    let last = if kind == "line" {
        "spun on"
    } else {
        "contended"
    };
    let mut table = with_header([kind, "waited for", hold, "times", last]);
    for share in shares {
        table.add_row([
            share.what.clone(),
            percent(share.wait),
            percent(share.hold),
            share.count.to_string(),
            match kind {
                "line" => percent(share.spin),
                _ => percent(share.contended),
            },
        ]);
    }
    align_right(&mut table, 1..);
    table
}

/// Prints the same as one line of JSON.
pub fn print_json(plan: &Plan, target: &Simulated, attribution: &Attribution, range: [f64; 2]) {
    let rows = |shares: &[Share]| -> Vec<Value> {
        let row = |one: &Share| {
            json!({
                "what": one.what, "wait": one.wait, "hold": one.hold, "spin": one.spin,
                "count": one.count, "contended": one.contended,
            })
        };
        shares.iter().map(row).collect()
    };
    let line = json!({
        "kind": "attribution",
        "workload": plan.workload.name(),
        "on": "sim",
        "vm": target.preset.name,
        "tasks": plan.tasks,
        "mode": plan.mode.name(),
        "profile": target.profile.name,
        "topology": target.profile.topology.shape(),
        "seed": target.seed,
        "corners": { "low": range[0], "high": range[1] },
        "waiting_for_lines": attribution.lines_wait,
        "spinning": attribution.spinning,
        "interrupts": attribution.interrupts,
        "waiting_for_memory": attribution.memory,
        "blocked": attribution.blocked,
        "waiting_for_cpu": attribution.queued,
        "locks": rows(&attribution.locks),
        "callers": rows(&attribution.callers),
        "lines": rows(&attribution.lines),
        "bottleneck": attribution.bottleneck(),
    });
    println!("{line}");
}
