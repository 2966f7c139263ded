//! What operations take, as Markdown or JSON.

use baselines::Preset;
use checks::conflicts::Taken;
use serde_json::json;
use std::collections::BTreeSet;

/// Prints what all operations of a preset take.
pub fn print(preset: Preset, rows: &[Taken], is_json: bool) {
    if is_json {
        return rows.iter().for_each(|row| print_json(preset, row));
    }
    println!("### `{}`\n\n{}.", preset.name, preset.description);
    println!("Source: {}.\n", preset.source);
    println!(
        "| operation | locks | two threads meet in | two processes meet in |\n|---|---|---|---|"
    );
    for row in rows {
        let times = |&(class, count): &(&str, u64)| match count {
            1 => class.to_owned(),
            _ => format!("{class} × {count}"),
        };
        let locks: Vec<String> = row.locks.iter().map(times).collect();
        let threads = if row.operation.is_whole() {
            String::new()
        } else {
            names(&row.threads)
        };
        println!(
            "| {} | {} | {threads} | {} |",
            row.operation.name(),
            locks.join(", "),
            names(&row.processes)
        );
    }
    println!();
}

fn names(lines: &BTreeSet<String>) -> String {
    if lines.is_empty() {
        "nothing".to_owned()
    } else {
        Vec::from_iter(lines.iter().map(String::as_str)).join(", ")
    }
}

fn print_json(preset: Preset, row: &Taken) {
    let locks = row
        .locks
        .iter()
        .map(|(class, count)| json!({ "class": class, "count": count }));
    let line = json!({
        "record": "taken", "vm": preset.name, "operation": row.operation.name(),
        "locks": locks.collect::<Vec<_>>(), "threads": row.threads, "processes": row.processes,
    });
    println!("{line}");
}
