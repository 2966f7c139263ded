//! Recordings in figures, as tables and as a line of JSON.

use super::table::{align_right, with_header};
use super::{format, percent, short, time};
use comfy_table::Table;
use recording::{End, Group, Recording, Summary, WaitFor, Work};
use serde_json::{Value, json};
use stats::count;
use std::path::Path;

/// Prints what is in a recording; `recording` has everything but its events.
pub fn print(path: &Path, summary: &Summary, recording: &Recording, end: End) {
    println!(
        "{}: {}, {}, {end}",
        path.display(),
        stats::duration(seconds(recording.nanoseconds)),
        count(summary.events, "event")
    );
    print_environment(recording);
    if let Some(cost) = recording.cost {
        println!(
            "recording costs {} of a loop of memory calls",
            percent(cost)
        );
    }
    let lost = recording.lost;
    println!(
        "lost: {} that the kernel dropped, the memory of {}",
        count(lost.records, "record"),
        count(lost.unknown.max(summary.unknown), "event")
    );
    if lost.switches > 0 {
        println!(
            "events lost: the kernel counts {} more switches of threads",
            lost.switches
        );
    }
    for holder in &summary.holders {
        println!(
            "{} held mmap_lock {}, for {} in all",
            holder.process,
            count(holder.count, "time"),
            stats::duration(seconds(holder.nanoseconds))
        );
    }
    format::print_of("roles", &roles(summary, recording));
    format::print_of("calls", &calls(summary, recording));
    format::print_of("time", &spans(summary));
}

fn print_environment(recording: &Recording) {
    let environment = &recording.environment;
    println!(
        "kernel {}, {}, huge pages {}, overcommit {}, max_map_count {}, pages of {} bytes",
        environment.kernel,
        count(environment.cpus, "CPU"),
        environment.huge_pages,
        environment.overcommit,
        environment.max_map_count,
        recording.page
    );
    for (name, value) in &environment.variables {
        println!("{name}={value}");
    }
}

/// A row for each role: rates, and shares of its threads' time.
fn roles(summary: &Summary, recording: &Recording) -> Table {
    let mut header = vec![
        "process",
        "thread",
        "processes",
        "threads",
        "calls/s",
        "faults/s",
        "computed",
    ];
    let kinds = kinds(summary);
    header.extend(kinds.iter().map(|&kind| WaitFor::ALL[kind].name()));
    header.extend(["quiet", "rest"]);
    let mut table = with_header(header);
    for Group {
        role,
        processes,
        work,
    } in &summary.groups
    {
        let mut cells = vec![
            role.process.clone(),
            role.name.clone(),
            processes.to_string(),
            role.threads.len().to_string(),
            short(a_second(work.calls, recording.nanoseconds)),
            short(a_second(work.faults, recording.nanoseconds)),
        ];
        let [computed, quiet, rest] = [work.computed, work.quiet, rest(work)];
        let slept = kinds.iter().map(|&kind| work.slept[kind]);
        let times = [computed].into_iter().chain(slept).chain([quiet, rest]);
        let existed = work.existed.max(1) as f64;
        cells.extend(times.map(|time| percent(time as f64 / existed)));
        table.add_row(cells);
    }
    align_right(&mut table, 2..);
    table
}

/// The kinds of sleep that a table has, as indices: for people, those that there are.
fn kinds(summary: &Summary) -> Vec<usize> {
    let is_shown = |&kind: &usize| {
        let mut groups = summary.groups.iter();
        !format::is_text() || groups.any(|group| group.work.slept[kind] > 0)
    };
    (0..WaitFor::ALL.len()).filter(is_shown).collect()
}

/// The time that is of no other kind.
fn rest(work: &Work) -> u64 {
    let parts = work.slept.iter().chain([&work.computed, &work.quiet]);
    parts.fold(work.existed, |rest, &part| rest.saturating_sub(part))
}

/// A row for each kind of call and fault.
fn calls(summary: &Summary, recording: &Recording) -> Table {
    let mut table = with_header(["call", "count", "per second", "failed", "bytes"]);
    let mut row = |name: &str, count: u64, failed: String, bytes: u64| {
        table.add_row([
            name.to_owned(),
            count.to_string(),
            short(a_second(count, recording.nanoseconds)),
            failed,
            short(bytes as f64),
        ]);
    };
    for one in &summary.calls {
        row(one.name, one.count, one.failed.to_string(), one.bytes);
    }
    for (name, pages) in faults(summary) {
        let bytes = pages.saturating_mul(recording.page.into());
        row(name, pages, "–".into(), bytes);
    }
    align_right(&mut table, 1..);
    table
}

/// The kinds of faults, with their pages.
fn faults(summary: &Summary) -> [(&'static str, u64); 2] {
    [
        ("fault, missing", summary.missing),
        ("fault, protected", summary.protected),
    ]
}

/// A row for each part of the time.
fn spans(summary: &Summary) -> Table {
    let mut table = with_header(["until", "calls/s", "faults/s", "mappings", "bytes mapped"]);
    let mut from = 0;
    for span in &summary.spans {
        let length = span.until - from;
        from = span.until;
        table.add_row([
            time(seconds(span.until)),
            short(a_second(span.calls, length)),
            short(a_second(span.faults, length)),
            span.mappings.to_string(),
            short(span.bytes as f64),
        ]);
    }
    align_right(&mut table, 0..);
    table
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn a_second(count: u64, nanoseconds: u64) -> f64 {
    match nanoseconds {
        0 => 0.0,
        _ => count as f64 / seconds(nanoseconds),
    }
}

/// Prints the same as a line of JSON.
pub fn print_json(path: &Path, summary: &Summary, recording: &Recording, end: End) {
    let environment = &recording.environment;
    let variables = environment.variables.iter();
    let variables = variables.map(|(name, value)| (name.clone(), json!(value)));
    let line = json!({
        "kind": "recording",
        "path": path.display().to_string(),
        "seconds": seconds(recording.nanoseconds),
        "whole": end == End::Whole,
        "events": summary.events,
        "processes": recording.processes.len(),
        "threads": recording.threads.len(),
        "files": recording.files.len(),
        "page": recording.page,
        "environment": {
            "kernel": environment.kernel,
            "cpus": environment.cpus,
            "huge_pages": environment.huge_pages,
            "overcommit": environment.overcommit,
            "max_map_count": environment.max_map_count,
            "variables": Value::Object(variables.collect()),
        },
        "cost": recording.cost,
        "lost": {
            "records": recording.lost.records,
            "unknown": recording.lost.unknown.max(summary.unknown),
            "switches": recording.lost.switches,
        },
        "roles": summary.groups.iter().map(group_json).collect::<Vec<_>>(),
        "calls": summary.calls.iter().map(|calls| json!({
            "name": calls.name,
            "count": calls.count,
            "failed": calls.failed,
            "bytes": calls.bytes,
        })).collect::<Vec<_>>(),
        "faults": { "missing": summary.missing, "protected": summary.protected },
        "holders": summary.holders.iter().map(|holder| json!({
            "process": holder.process,
            "count": holder.count,
            "seconds": seconds(holder.nanoseconds),
        })).collect::<Vec<_>>(),
        "spans": summary.spans.iter().map(|span| json!({
            "until": seconds(span.until),
            "calls": span.calls,
            "faults": span.faults,
            "mappings": span.mappings,
            "bytes": span.bytes,
        })).collect::<Vec<_>>(),
    });
    println!("{line}");
}

fn group_json(group: &Group) -> Value {
    let Group {
        role,
        processes,
        work,
    } = group;
    let slept = WaitFor::ALL.iter().zip(work.slept);
    let slept = slept.map(|(kind, slept)| (kind.name().to_owned(), json!(seconds(slept))));
    json!({
        "process": role.process,
        "thread": role.name,
        "processes": processes,
        "threads": role.threads.len(),
        "calls": work.calls,
        "faults": work.faults,
        "existed": seconds(work.existed),
        "computed": seconds(work.computed),
        "slept": Value::Object(slept.collect()),
        "quiet": seconds(work.quiet),
    })
}
