//! Tables of `scaling --json`: a workload a row, a number of tasks a column.

use super::render::{plain, table as markdown};
use serde_json::Value;

/// The keys that make a row.
const NAMES: [&str; 3] = ["workload", "mode", "vm"];

/// A row's names: its workload, its kind of tasks, and its VM.
type Row<'a> = [&'a str; 3];

/// The table of `key`: `rate`, in thousands a second; `ratio`; or `bottleneck`. Presets are named
/// where there are several.
pub fn table(lines: &[Value], key: &str) -> String {
    let counts = counts(lines);
    let rows = rows(lines);
    let presets = rows.iter().any(|row| row[2] != rows[0][2]);
    let names = if presets { 3 } else { 2 };
    let cells = rows.iter().map(|row| {
        let at = |&tasks: &u64| {
            let line = lines
                .iter()
                .find(|line| names_of(line) == *row && line["tasks"] == tasks);
            line.and_then(|line| cell(line, key))
                .unwrap_or_else(|| "–".into())
        };
        let names = row[..names].iter().map(|name| (*name).to_owned());
        Vec::from_iter(names.chain(counts.iter().map(at)))
    });
    let head = ["workload", "tasks", "VM"].into_iter().take(names);
    let head = head
        .map(str::to_owned)
        .chain(counts.iter().map(u64::to_string));
    let words = match key {
        "bottleneck" => counts.len(),
        _ => 0,
    };
    markdown(head.collect(), names + words, cells)
}

fn names_of(line: &Value) -> Row<'_> {
    NAMES.map(|key| line[key].as_str().unwrap_or_default())
}

/// The numbers of tasks, each once.
fn counts(lines: &[Value]) -> Vec<u64> {
    let counts = lines.iter().filter_map(|line| line["tasks"].as_u64());
    let mut counts = Vec::from_iter(counts);
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The rows, those of a workload together. A campaign has one kind of task after the other.
fn rows(lines: &[Value]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for row in lines.iter().map(names_of) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let first = |workload| rows.iter().position(|row| row[0] == workload);
    let mut sorted = Vec::from_iter(rows.iter().map(|row| (first(row[0]), *row)));
    sorted.sort_by_key(|(first, _)| *first);
    Vec::from_iter(sorted.into_iter().map(|(_, row)| row))
}

fn cell(line: &Value, key: &str) -> Option<String> {
    Some(match key {
        "rate" => plain(line["rate"].as_f64()? / 1000.0),
        "bottleneck" => line["bottleneck"].as_str()?.to_owned(),
        _ => format!("{:.1}", line[key].as_f64()?),
    })
}

#[test]
fn presets_are_a_column_if_there_are_several() {
    let line = |vm: &str, tasks: u64, rate: f64| {
        serde_json::json!({
            "workload": "brk1", "mode": "threads", "vm": vm, "tasks": tasks, "rate": rate,
            "bottleneck": format!("{vm} at {tasks}"),
        })
    };
    let lines = [
        line("a", 1, 1000.0),
        line("b", 1, 2000.0),
        line("b", 4, 500.0),
    ];
    assert_eq!(
        table(&lines, "rate"),
        "| workload | tasks | VM | 1 | 4 |\n|---|---|---|---:|---:|\n| brk1 | threads | a | 1 | – \
         |\n\
         | brk1 | threads | b | 2 | 0.500 |"
    );
    assert_eq!(
        table(&lines[1..], "bottleneck"),
        "| workload | tasks | 1 | 4 |\n|---|---|---|---|\n| brk1 | threads | b at 1 | b at 4 |"
    );
}
