//! Writes a profile as the text of its file.

use super::fields::{Field, fields};
use super::{Arbitration, Clocks, MachineProfile, Number};
use std::fmt::Write;

/// The text of the file, which [`read`](super::read::read) turns back into `profile`.
pub(super) fn write(profile: &MachineProfile) -> String {
    let mut text = format!(
        "name = {}\nabout = {}\n",
        quoted(&profile.name),
        quoted(&profile.about)
    );
    let mut last = "";
    for entry in entries(profile) {
        let (section, name) = entry.key.split_once('.').expect("keys are dotted");
        if section != last {
            let _ = write!(text, "\n[{section}]{}\n", unit(section));
            last = section;
        }
        let (value, source) = (entry.value, quoted(&entry.source));
        let _ = writeln!(text, "{name} = {{ value = {value}, source = {source} }}");
    }
    text
}

/// The file's entries, in order.
pub(super) fn entries(profile: &MachineProfile) -> Vec<Number> {
    let source = |key| profile.sources.get(key).map_or("not said", String::as_str);
    let entry = |(key, field)| Number {
        key,
        value: value(field),
        source: source(key).to_owned(),
    };
    fields(&mut profile.clone())
        .into_iter()
        .map(entry)
        .collect()
}

/// The units of a section's numbers, as a comment.
fn unit(section: &str) -> &'static str {
    match section {
        "topology" => "",
        "transfer" => " # nanoseconds, one way",
        "core" => " # nanoseconds; store_buffer in entries, smt a share, clocks in GHz",
        "memory" => " # nanoseconds; zero_socket_gbps in GB/s",
        _ => " # nanoseconds",
    }
}

fn value(field: Field<'_>) -> String {
    let list = |times: &[u64]| {
        let times: Vec<String> = times.iter().map(|&time| nanoseconds(time)).collect();
        format!("[{}]", times.join(", "))
    };
    match field {
        Field::Count(count) => count.to_string(),
        Field::Hops(hops) => format!("{hops:?}"),
        Field::Time(time) => nanoseconds(*time),
        Field::Times(times) => list(times),
        Field::PerClass(classes) => {
            let near = [classes.sibling, classes.cluster, classes.socket];
            list(&[&near, &classes.hops[..]].concat())
        }
        Field::Legs(legs) => format!("{legs:?}"),
        Field::Clocks(Clocks(rows)) => {
            let row = |(cores, clock): &(usize, f64)| format!("[{cores}, {clock:?}]");
            format!("[{}]", rows.iter().map(row).collect::<Vec<_>>().join(", "))
        }
        Field::Number(number, ..) => format!("{number:?}"),
        Field::Arbitration(Arbitration::FirstCome) => "\"first-come\"".into(),
        Field::Arbitration(Arbitration::Nearest { bypasses }) => {
            format!("\"nearest\", bypasses = {bypasses}")
        }
    }
}

/// Picoseconds as nanoseconds, without a rounding error.
fn nanoseconds(time: u64) -> String {
    let (whole, rest) = (time / 1000, time % 1000);
    let text = format!("{whole}.{rest:03}");
    let text = text.trim_end_matches('0');
    text.trim_end_matches('.').to_owned()
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            c if c.is_control() => write!(quoted, "\\u{:04X}", u32::from(c)),
            c => write!(quoted, "{c}"),
        };
    }
    quoted + "\""
}
