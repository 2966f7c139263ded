//! The published curves as tables of Markdown, one for each source: the rates of all tasks together
//! at the fewest tasks, at the peak and at the most, and for a pair of kernels the ratio at the
//! most tasks that both have.
//!
//! `cargo run --release -p scalevm-studies --example published`

use std::collections::BTreeSet;
use std::fmt::Write;
use studies::published::{Curve, How, Point, Unit, all};

fn main() {
    let curves = all().unwrap_or_else(|error| panic!("{error}"));
    print!("# Published rates\n{}", tables(&curves));
}

/// A table of the curves of each source.
fn tables(curves: &[Curve]) -> String {
    let mut text = String::new();
    for curves in curves.chunk_by(|a, b| a.file() == b.file()) {
        let source = &curves[0].source;
        let how = match source.how {
            How::Table => "a table",
            How::Text => "text",
            How::Chart => "a chart",
        };
        let title = source.title.replace('[', "\\[").replace(']', "\\]");
        let (name, author, date) = (curves[0].file(), &source.author, &source.date);
        let address = &source.address;
        writeln!(text, "\n### {name}\n").unwrap();
        writeln!(text, "{author}, {date}: [{title}]({address}); from {how}.").unwrap();
        let notes = source.note.iter().chain(machine_notes(curves));
        for note in notes.collect::<BTreeSet<_>>() {
            writeln!(text, "{}.", capital(note)).unwrap();
        }
        text.push_str(
            "\n| curve | CPUs | processors | kernel | rates | after over before | after; notes |\n",
        );
        text.push_str("|---|---:|---|---|---|---:|---|\n");
        curves.iter().for_each(|curve| text.push_str(&row(curve)));
    }
    text
}

fn machine_notes(curves: &[Curve]) -> impl Iterator<Item = &String> {
    curves
        .iter()
        .filter_map(|curve| curve.machine.note.as_ref())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A curve, with the rates at the fewest tasks, at the peak and at the most.
fn row(curve: &Curve) -> String {
    let name = curve.id.split_once('/').expect("a file and a name").1;
    let (first, last) = (curve.points[0], *curve.points.last().expect("points"));
    let mut shown = vec![first];
    for point in [curve.peak(), last] {
        if !shown.contains(&point) {
            shown.push(point);
        }
    }
    let rates: Vec<_> = shown.iter().map(|point| rate(*point, curve.unit)).collect();
    let change = curve
        .change()
        .map_or_else(String::new, |Point(tasks, ratio)| {
            format!("{ratio:.3} at {tasks}")
        });
    let after = curve.after.as_ref().map(|after| &after.kernel);
    let words: Vec<_> = after.into_iter().chain(&curve.note).cloned().collect();
    let words = words.join("; ");
    let (cpus, cpu) = (curve.machine.cpus, &curve.machine.cpu);
    let (kernel, rates) = (&curve.kernel, rates.join("; "));
    format!("| {name} | {cpus} | {cpu} | {kernel} | {rates} | {change} | {words} |\n")
}

/// `142: 0.787 M/s`.
fn rate(Point(tasks, rate): Point, unit: Unit) -> String {
    match unit {
        Unit::TimesOne => format!("{tasks}: {rate:.2} ×"),
        Unit::Operations | Unit::Faults if rate < 1e6 => format!("{tasks}: {:.1} k/s", rate / 1e3),
        Unit::Operations | Unit::Faults => format!("{tasks}: {:.2} M/s", rate / 1e6),
    }
}
