//! `scalevm locks` as a user meets it, briefly.

mod support;

use serde_json::Value;
use support::command::{failure, json, number, quiet};

/// Every row with its size, scalevm's first.
const SIZES: &[(&str, bool, Option<u64>)] = &[
    ("tas", true, Some(1)),
    ("ticket", true, Some(8)),
    ("proportional", true, Some(8)),
    ("conbo", true, Some(8)),
    ("mcs", true, Some(8)),
    ("clh", true, Some(8)),
    ("k42", true, Some(16)),
    ("reciprocating", true, Some(8)),
    ("hapax", true, Some(16)),
    ("qspinlock", true, Some(4)),
    ("cna", true, Some(4)),
    ("obm", true, Some(1)),
    ("adaptive", true, Some(8)),
    ("parking_lot", false, Some(1)),
    ("std", false, Some(8)),
    ("spin", false, Some(1)),
    ("spin-ticket", false, Some(16)),
    ("spin-park-rw-read", true, Some(4)),
    ("spin-park-rw-write", true, Some(4)),
    ("rwsem-read", true, Some(40)),
    ("rwsem-write", true, Some(40)),
    ("freebsd-rw-read", true, Some(8)),
    ("freebsd-rw-write", true, Some(8)),
    ("parking_lot-rw-read", false, Some(8)),
    ("parking_lot-rw-write", false, Some(8)),
    ("std-rw-read", false, Some(12)),
    ("std-rw-write", false, Some(12)),
    ("epoch-enter", true, None),
    ("epoch-nested", true, None),
    ("epoch-wait", true, None),
    ("epoch-call", true, None),
    ("hazard-enter", true, None),
    ("hazard-protect", true, None),
    ("hazard-retire", true, None),
    ("crossbeam-pin", false, None),
    ("crossbeam-handle-pin", false, None),
    ("crossbeam-nested", false, None),
    ("crossbeam-flush", false, None),
    ("crossbeam-defer", false, None),
    ("haphazard-protect", false, None),
    ("haphazard-retire", false, None),
    ("seize-enter", false, None),
    ("seize-protect", false, None),
    ("seize-retire", false, None),
    ("limited", true, None),
    ("fetch_add", false, None),
];

fn records(arguments: &str) -> Vec<Value> {
    json(&quiet(arguments))
}

#[test]
fn every_lock_is_measured_and_has_its_size() {
    let records = records("locks --json --threads 2,1,2 --duration 0.012");
    assert_eq!(records.len(), SIZES.len());
    for (record, &(name, ours, bytes)) in records.iter().zip(SIZES) {
        assert_eq!(record["kind"], "lock");
        assert_eq!(record["name"], name);
        assert_eq!(record["ours"], ours, "{name}");
        assert_eq!(record["bytes"].as_u64(), bytes, "{name}");
        assert!(number(&record["uncontended_ns"]) > 0.0, "{record}");
        let contended = record["contended"].as_array().expect("an array");
        let threads = contended.iter().map(|one| one["threads"].as_u64());
        assert_eq!(threads.collect::<Vec<_>>(), [Some(1), Some(2)], "{name}");
        for one in contended {
            let (min, max) = (number(&one["min"]), number(&one["max"]));
            assert!(min <= max && number(&one["operations"]) > 0.0, "{record}");
            assert!(number(&one["ops_per_second"]) > 0.0, "{record}");
            assert_eq!(one["slow_lock"].is_u64(), name == "obm", "{record}");
            assert_eq!(one["slow_unlock"].is_u64(), name == "obm", "{record}");
        }
    }
}

#[test]
fn totals_are_consistent() {
    for record in records("locks --json --only mutex,epoch-enter --threads 1,3 --duration 0.06") {
        for one in record["contended"].as_array().expect("an array") {
            let threads = number(&one["threads"]);
            let (min, max) = (number(&one["min"]), number(&one["max"]));
            let (operations, seconds) = (number(&one["operations"]), number(&one["seconds"]));
            assert!(seconds >= 0.06, "rounds were cut short: {one}");
            let average = operations / seconds / threads;
            let close = 1e-9 * average;
            assert!(min <= average + close && average <= max + close, "{one}");
            assert!(
                min + (threads - 1.0) * max + close >= threads * average,
                "{one}"
            );
        }
    }
}

#[test]
fn names_and_groups_choose() {
    let names = |arguments: &str| -> Vec<String> {
        let arguments = format!("locks --json --threads 1 --duration 0.003 --only {arguments}");
        let name = |record: &Value| record["name"].as_str().expect("a name").to_owned();
        records(&arguments).iter().map(name).collect()
    };
    assert_eq!(names("obm,tas,obm"), ["tas", "obm"]);
    assert_eq!(names("counter,k42"), ["k42", "limited", "fetch_add"]);
}

#[test]
fn the_table_has_a_column_for_each_number_of_threads() {
    let table = quiet("locks --only obm,parking_lot --threads 1,2 --duration 0.006");
    let header = table.lines().find(|line| line.contains("bytes"));
    let header = header.expect("a header");
    for title in [
        "lock",
        "ns",
        "×1",
        "×2",
        "slowest/fastest",
        "slow lock/unlock",
    ] {
        assert!(header.contains(title), "{table}");
    }
    let row = table.lines().find(|line| line.trim().starts_with("obm"));
    let cells: Vec<&str> = row.expect("a row").split_whitespace().collect();
    assert_eq!(&cells[..3], ["obm", "scalevm", "1"], "{table}");
}

#[test]
fn the_list_names_what_is_measured() {
    let listed: Vec<String> = records("list --json")
        .into_iter()
        .filter(|record| record["kind"] == "lock")
        .map(|record| record["name"].as_str().expect("a name").to_owned())
        .collect();
    let ours = SIZES.iter().filter(|row| row.1).map(|row| row.0);
    assert_eq!(listed, ours.collect::<Vec<_>>());
}

#[test]
fn bad_usage_is_told_and_exits_with_2() {
    for (arguments, hint) in [
        ("locks --only obn", "'obm'"),
        ("locks --only obm,adaptve", "'adaptive'"),
        ("locks --threads 0", "0"),
        ("locks --threads 1025", "1025"),
        ("locks --threads 1,,2", "--threads"),
        ("locks --duration 0", "0.001"),
    ] {
        let errors = failure(arguments, 2);
        assert!(errors.contains(hint), "{arguments}: {errors}");
    }
}
