//! Tables of `sweep --json`: a workload a row, a number of tasks a column.

use super::number::plain;
use super::support::command::json;
use serde_json::Value;

/// The keys that make a row.
const NAMES: [&str; 3] = ["workload", "mode", "vm"];

/// A row's names: its workload, its kind of tasks, and its VM.
type Row<'a> = [&'a str; 3];

/// The table of `key`: `average`, in thousands a second, or `bottleneck`. Presets are named where
/// there are several.
pub fn table(stdout: &str, key: &str) -> String {
    let mut lines = json(stdout);
    lines.retain(|line| line["kind"] == "summary");
    let counts = counts(&lines);
    let rows = rows(&lines);
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
    let rule = match key {
        "bottleneck" => "---",
        _ => "---:",
    };
    let rules = ["---"].repeat(names).into_iter();
    let rules = rules.chain(counts.iter().map(|_| rule));
    let rules = format!("|{}|", Vec::from_iter(rules).join("|"));
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let lines = [line(head.collect()), rules].into_iter();
    Vec::from_iter(lines.chain(cells.map(line))).join("\n")
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
        "average" => plain(line["average"].as_f64()? / 1000.0),
        _ => line[key].as_str()?.to_owned(),
    })
}

#[test]
fn runs_are_rows_and_tasks_are_columns() {
    let line = |workload: &str, vm: &str, tasks: u64, rate: f64| {
        let line = serde_json::json!({
            "kind": "summary", "workload": workload, "mode": "threads", "vm": vm, "tasks": tasks,
            "average": rate, "bottleneck": format!("{vm} at {tasks}"),
        });
        format!("{line}\n")
    };
    let one = line("brk1", "a", 1, 4e6) + &line("brk1", "a", 2, 5e5);
    let lines = one.clone() + &line("fork1", "a", 2, 20500.0) + "{\"kind\":\"point\"}\n";
    assert_eq!(
        table(&lines, "average"),
        "| workload | tasks | 1 | 2 |\n|---|---|---:|---:|\n\
         | brk1 | threads | 4,000 | 500 |\n| fork1 | threads | – | 20.5 |"
    );
    assert_eq!(
        table(&(one + &line("brk1", "b", 2, 500.0)), "bottleneck"),
        "| workload | tasks | VM | 1 | 2 |\n|---|---|---|---|---|\n\
         | brk1 | threads | a | a at 1 | a at 2 |\n| brk1 | threads | b | – | b at 2 |"
    );
}
