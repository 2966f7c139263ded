//! The published curves: they can be read, nothing malformed can, and `docs/published.md` shows
//! them.
//!
//! With `PAGES` in the environment the page's table is written instead of compared.

mod refused;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use studies::published::{Curve, How, Mode, Point, Unit, all, read};

/// A file that is as it should be.
const GOOD: &str = r#"
[source]
title = "A message"
author = "A person"
date = "2020-09-15"
address = "https://example.org/message"
how = "table"

[machines.box]
cpu = "A processor"
cpus = 16
sockets = 2
cores = 4
threads = 2

[[curve]]
name = "mmap1-threads"
machine = "box"
workload = "mmap1"
mode = "threads"
kernel = "Linux 6.12"
unit = "operations/s"
points = [[1, 100], [2, 150.5]]
[curve.after]
kernel = "patched"
points = [[2, 301]]
ratio = [2, 2.0]
"#;

#[test]
fn a_good_file_is_read() {
    let curves = read("good", GOOD).unwrap();
    let [curve] = &curves[..] else {
        panic!("{} curves", curves.len())
    };
    assert_eq!(curve.id, "good/mmap1-threads");
    assert_eq!((curve.machine.cpus, curve.mode), (16, Mode::Threads));
    assert_eq!(curve.points, [Point(1, 100.0), Point(2, 150.5)]);
    assert_eq!(curve.peak(), Point(2, 150.5));
    assert_eq!(curve.change(), Some(Point(2, 2.0)));
    assert_eq!(curve.change_within(1), None);
}

#[test]
fn malformed_files_are_refused() {
    let planted = [
        ("author = \"A person\"\n", "", "missing field `author`"),
        ("author", "writer", "unknown field `writer`"),
        ("2020-09-15", "September", "is not a date"),
        ("https://", "", "is not an address"),
        ("\"table\"", "\"memory\"", "unknown variant `memory`"),
        ("cores = 4", "cores = 5", "are not 16 CPUs"),
        (
            "machine = \"box\"",
            "machine = \"other\"",
            "no curve names it",
        ),
        ("cpu = \"A processor\"", "cpu = \"\"", "no cpu"),
        (
            "mode = \"threads\"",
            "mode = \"fibres\"",
            "unknown variant `fibres`",
        ),
        (
            "kernel = \"Linux 6.12\"",
            "kernel = \" \"",
            "no name, workload or kernel",
        ),
        ("operations/s", "times one task", "one task is not 1"),
        (
            "[[1, 100], [2, 150.5]]",
            "[[2, 100], [2, 150.5]]",
            "2 tasks after 2",
        ),
        ("[2, 150.5]", "[2, 0]", "above zero"),
        ("[[1, 100], [2, 150.5]]", "[]", "no points"),
        ("points = [[2, 301]]", "points = [[3, 301]]", "in common"),
        ("ratio = [2, 2.0]", "ratio = [2, 0.5]", "is 2.000, not 0.5"),
        (
            "ratio = [2, 2.0]",
            "ratio = [1, 2.0]",
            "not both have a point",
        ),
        ("points = [[1,", "points = [[1.5,", "line 23"),
    ];
    refused::each(GOOD, "published/bad.toml", &planted, |text| {
        read("bad", text)
    });
    let pair = GOOD.find("[curve.after]").unwrap();
    let alone = GOOD[..pair].replace(", [2, 150.5]", "");
    let error = read("bad", &alone).expect_err("one point").to_string();
    assert!(
        error.contains("a curve needs at least two points"),
        "{error}"
    );
}

#[test]
fn published_curves_are_many_and_their_names_differ() {
    let curves = all().unwrap_or_else(|error| panic!("{error}"));
    let ids: BTreeSet<_> = curves.iter().map(|curve| &curve.id).collect();
    assert_eq!(ids.len(), curves.len(), "an id is there twice");
    let scaling = curves.iter().filter(|curve| curve.points.len() > 2).count();
    let pairs = curves.iter().filter(|curve| curve.after.is_some()).count();
    assert!(
        scaling >= 20 && pairs >= 20,
        "{scaling} curves, {pairs} pairs"
    );
}

#[test]
fn all_files_of_the_folder_are_compiled_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("published");
    let files = fs::read_dir(folder).expect("the folder");
    let names = files.map(|file| file.expect("a file").file_name().into_string().unwrap());
    let there: BTreeSet<_> = names
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let curves = all().unwrap_or_else(|error| panic!("{error}"));
    let read: BTreeSet<_> = curves.iter().map(|curve| curve.file().to_owned()).collect();
    assert_eq!(read, there);
}

#[test]
fn the_page_shows_all() {
    const BEGIN: &str = "<!-- published -->\n";
    const END: &str = "<!-- end -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/published.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (head, rest) = page.split_once(BEGIN).expect("where tables begin");
    let (shown, tail) = rest.split_once(END).expect("where tables end");
    let curves = all().unwrap_or_else(|error| panic!("{error}"));
    let tables = tables(&curves);
    if std::env::var_os("PAGES").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{tables}{END}{tail}")).expect("the page");
    } else {
        assert_eq!(shown, tables, "PAGES=write writes the page");
    }
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
