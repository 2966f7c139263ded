//! The published curves: they can be read, and nothing malformed can.

mod refused;

use stats::record::Mode;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use studies::published::{Point, all, read};

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
        read("published/bad.toml", text)
    });
    let pair = GOOD.find("[curve.after]").unwrap();
    let alone = GOOD[..pair].replace(", [2, 150.5]", "");
    let error = read("published/bad.toml", &alone)
        .expect_err("one point")
        .to_string();
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
