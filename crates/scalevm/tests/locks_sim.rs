//! `scalevm locks --on sim` as a user meets it, on small machines.

mod support;

use support::command::{failure, json, number, quiet};

/// Every row that is simulated.
const ROWS: [&str; 21] = [
    "tas",
    "ticket",
    "proportional",
    "conbo",
    "mcs",
    "clh",
    "k42",
    "reciprocating",
    "hapax",
    "qspinlock",
    "cna",
    "obm",
    "adaptive",
    "spin-park-rw-read",
    "spin-park-rw-write",
    "rwsem-read",
    "rwsem-write",
    "freebsd-rw-read",
    "freebsd-rw-write",
    "limited",
    "fetch_add",
];

/// The first lock's record of a run with one seed.
fn record(options: &str) -> serde_json::Value {
    json(&quiet(&format!(
        "locks --on sim --seeds 1 --json {options}"
    )))
    .remove(0)
}

#[test]
fn two_runs_are_the_same() {
    let arguments = "locks --on sim --topology 2x3x2 --threads 1,12 --seeds 2 --json";
    assert_eq!(quiet(arguments), quiet(arguments));
}

#[test]
fn every_row_has_its_fields() {
    let text = quiet("locks --on sim --topology 2x2x1 --seeds 2 --threads 4,1,4 --json");
    let records = json(&text);
    let names: Vec<&str> = records
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ROWS);
    for record in &records {
        assert_eq!(record["kind"], "lock");
        assert_eq!(record["on"], "sim");
        assert_eq!(record["machine"], "2x2x1");
        assert_eq!(record["topology"], "2x2x1");
        assert_eq!(record["seeds"], 2);
        assert_eq!(record["ours"], record["name"] != "fetch_add");
        assert_eq!(record["unit"], "operations/s");
        assert_eq!(record["private_ns"], 600.0);
        // A counter for each CPU is not one object.
        let is_sized = record["bytes"].is_u64() || record["group"] == "counter";
        assert!(is_sized && record["group"].is_string(), "{record}");
        assert!(number(&record["uncontended_ns"]) > 1.0, "{record}");
        let points = record["contended"].as_array().expect("an array");
        let threads: Vec<Option<u64>> = points.iter().map(|one| one["threads"].as_u64()).collect();
        assert_eq!(threads, [Some(1), Some(4)]);
        for point in points {
            let [low, rate, high] =
                ["low", "ops_per_second", "high"].map(|key| number(&point[key]));
            assert!(0.0 < low && low <= rate && rate <= high, "{point}");
            assert!(number(&point["min"]) <= number(&point["max"]), "{point}");
            assert!(number(&point["operations"]) >= 4_000.0, "{point}");
            assert!(number(&point["seconds"]) > 0.0, "{point}");
            for share in ["fairness", "jain"] {
                assert!((0.0..=1.0).contains(&number(&point[share])), "{point}");
            }
        }
    }
}

/// Case study 004: queue locks keep what ticket locks lose; CONBO does no harm.
#[test]
fn the_ranking_of_seed_004() {
    let text =
        quiet("locks --machine xeon-8s --threads 80 --seeds 1 --only ticket,conbo,mcs,k42 --json");
    let records = json(&text);
    let rate = |name: &str| {
        let record = records.iter().find(|one| one["name"] == name);
        number(&record.expect("it is there")["contended"][0]["ops_per_second"])
    };
    assert!(rate("k42") > 2.0 * rate("ticket"), "{text}");
    assert!(rate("mcs") > 2.0 * rate("ticket"), "{text}");
    assert!(rate("conbo") > 1.2 * rate("ticket"), "{text}");
}

#[test]
fn the_table_and_the_curves_are_shown() {
    let text = quiet("locks --topology 1x4x1 --seeds 1 --only ticket,k42");
    assert!(text.starts_with("simulated 1x4x1, 4 CPUs"), "{text}");
    for part in [
        "×1",
        "×4",
        "min/max",
        "Jain",
        "kept",
        "0 CPUs",
        "compared with",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_cpus_do_is_an_option() {
    let rates = |options: &str| {
        let record = record(&format!(
            "--topology 1x4x1 --threads 1,4 --only mcs {options}"
        ));
        let rates = [0, 1].map(|at| number(&record["contended"][at]["ops_per_second"]));
        (record, rates)
    };
    let (_, usual) = rates("");
    let (record, rates) = rates("--lines 8 --section 200 --private 1200.5");
    assert_eq!(
        (&record["lines"], &record["section_ns"]),
        (&8.into(), &200.0.into())
    );
    assert_eq!(record["private_ns"], 1200.5);
    assert!(rates[0] < 0.6 * usual[0] && rates[1] < 0.6 * usual[1]);
    let text = quiet("locks --topology 1x2x1 --seeds 1 --only mcs --lines 1");
    assert!(
        text.contains("sections write 1 line and compute 40 ns"),
        "{text}"
    );
}

/// Two CPUs of a socket pass a line on faster than two of different sockets.
#[test]
fn cpus_may_be_of_different_sockets() {
    let rate = |options: &str| {
        let record = record(&format!(
            "--topology 2x2x1 --threads 2 --only fetch_add --private 1 {options}"
        ));
        let rate = number(&record["contended"][0]["ops_per_second"]);
        (record["place"].clone(), record["disturbed"].clone(), rate)
    };
    let (pack, calm, near) = rate("");
    let (spread, disturbed, far) = rate("--place spread --disturb");
    assert_eq!((&pack, &spread), (&"pack".into(), &"spread".into()));
    assert_eq!((calm, disturbed), (false.into(), true.into()));
    assert!(far < 0.7 * near, "{far} and {near}");
    let text = quiet("locks --topology 2x2x1 --seeds 1 --threads 2 --only mcs --place spread");
    assert!(text.contains("CPUs: spread"), "{text}");
}

#[test]
fn bad_usage_is_told_and_exits_with_2() {
    for (arguments, hint) in [
        ("locks --machine nonesuch", "nonesuch"),
        ("locks --topology 2x2", "2x24x2"),
        ("locks --topology 99x99x99", "1 to 1024 CPUs"),
        (
            "locks --on sim --topology 1x2x1 --threads 3",
            "has 2 CPUs, not 3",
        ),
        ("locks --on sim --seeds 0", "--seeds"),
        ("locks --on sim --duration 1", "--duration"),
        ("locks --on sim --only parking_lot", "parking_lot"),
        ("locks --on sim --only epoch", "mutex, rwlock or counter"),
        ("locks --on hosted --machine freebsd-96", "--on sim"),
        ("locks --on os", "hosted"),
        (
            "locks --on hosted --lines 3",
            "--lines applies only to simulation",
        ),
        (
            "locks --on hosted --place spread",
            "--place applies only to simulation",
        ),
        ("locks --on sim --place apart", "pack, spread"),
        ("locks --on sim --lines 65", "--lines"),
        ("locks --on sim --private -1", "--private"),
        ("locks --on sim --section x", "0 to 1000000"),
    ] {
        let errors = failure(arguments, 2);
        assert!(errors.contains(hint), "{arguments}: {errors}");
    }
}

/// Sections may be fitted, several an operation, and write no line.
#[test]
fn operations_have_the_sections_that_were_asked_for() {
    let rate = |options: &str| {
        let record = record(&format!(
            "--only ticket --topology 1x2x1 --threads 1 {options}"
        ));
        (number(&record["contended"][0]["ops_per_second"]), record)
    };
    let (usual, _) = rate("");
    let (twice, record) = rate("--times 2");
    assert!((usual / twice - 2.0).abs() < 0.05, "{usual} and {twice}");
    assert_eq!(record["times"], 2);
    let (fitted, record) = rate("--times 3 --alone 250e3");
    assert!((fitted / 250e3 - 1.0).abs() < 0.02, "{fitted}");
    assert!(number(&record["private_ns"]) > 600.0, "{record}");
    let (empty, _) = rate("--lines 0");
    assert!(empty > usual, "{empty} and {usual}");
    let why = failure("locks --on sim --only mcs --seeds 1 --alone 1e12", 3);
    assert!(
        why.contains("mcs: 1000000000000 operations a second are not reached"),
        "{why}"
    );
    assert!(failure("locks --on sim --alone 1e6 --private 3", 2).contains("--private"));
}
