//! `scalevm reproduce` as a user meets it.

mod support;

use std::process::Output;
use support::command::{exits, failure, json, output, scalevm, text};
use support::scratch::Scratch;

/// The text on stdout, with none on stderr.
fn quiet(output: &Output) -> String {
    assert_eq!(text(&output.stderr), "", "progress is for terminals");
    text(&output.stdout)
}

#[test]
fn two_runs_are_the_same_and_have_all_fields() {
    let arguments = "reproduce --quick S3 --json";
    let (first, second) = (output(arguments), output(arguments));
    assert_eq!(quiet(&first), quiet(&second));
    let rows = json(&quiet(&first));
    assert_eq!(rows.len(), 5);
    for row in &rows {
        assert_eq!(row["kind"], "reproduction");
        assert_eq!(row["class"], "published");
        assert_eq!(
            (&row["document"], &row["system"]),
            (&"000".into(), &"S3".into())
        );
        assert_eq!(
            (&row["machine"], &row["topology"]),
            (&"freebsd-96".into(), &"2x24x2".into())
        );
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        assert!(number("low") <= number("median") && number("median") <= number("high"));
        assert!(number("corners_low") <= number("corners_high"));
        let ratio = number("median") / number("figure");
        assert!((number("ratio") - ratio).abs() < 1e-9);
        assert!(row["band"]["low"].as_f64() < row["band"]["high"].as_f64());
        assert!(
            row["source"]
                .as_str()
                .is_some_and(|source| source.starts_with("case study 000"))
        );
        let misses = row["verdict"] == "misses";
        assert!(misses || row["verdict"] == "holds");
        assert_eq!(row["why"].is_string(), misses, "{row}");
    }
    let all_hold = rows.iter().all(|row| row["verdict"] == "holds");
    assert_eq!(first.status.code(), Some(i32::from(!all_hold)));
}

#[test]
fn another_machine_and_bad_input() {
    // Too small for the case study's 12 and 96 processes, large enough for one simulated figure.
    let small = output("reproduce --quick --json --topology 1x2x2 S5");
    assert_eq!(quiet(&small).lines().count(), 3);
    let errors = failure("reproduce --quick --topology 1x2x2 S3", 2);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert_eq!(output("reproduce S99").status.code(), Some(2));
}

#[test]
fn what_is_published_is_met_to_the_digit_and_becomes_a_page() {
    let found = output("reproduce S6 --json");
    assert_eq!(found.status.code(), Some(0), "all hold");
    let lines = quiet(&found);
    let rows = json(&lines);
    assert_eq!(rows.len(), 11);
    for row in &rows {
        assert_eq!(row["figure"], row["median"], "{row}");
        assert_eq!(row["band"]["low"], row["band"]["high"]);
    }
    let folder = Scratch::folder("reproduce-report");
    folder.write("studies.jsonl", &lines);
    let mut report = scalevm("report");
    let (stdout, _) = exits(0, report.arg("studies.jsonl").current_dir(&folder.0));
    assert_eq!(
        stdout,
        "11 of 11 checks of the instrument hold (case study 000).\n"
    );
}

#[test]
fn what_holds_by_construction_is_no_prediction() {
    // The harness is run with 12 tasks; the machine is too small for the case study's 96.
    let stdout = quiet(&output("reproduce --quick S1 S6 --topology 1x12x2"));
    let (_, checks) = stdout
        .split_once("checks of the instrument, which hold by construction:")
        .expect("the checks");
    assert!(
        checks.contains("samples of a run, 12 processes"),
        "{stdout}"
    );
    let last = stdout.lines().last().expect("how many hold");
    assert!(
        last.starts_with("15 of 15 checks of the instrument hold; "),
        "{last}"
    );
}

#[test]
fn beyond_the_case_study_the_first_lock_is_named() {
    // Too small for the case study's figures; large enough for 16 tasks of the figures beyond it.
    let rows = json(&quiet(&output(
        "reproduce --quick S4 --json --topology 1x8x2",
    )));
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!(
        row["what"],
        "mmap1, 16 processes: scalevm over freebsd-epoch"
    );
    assert_eq!(
        (&row["aim"], &row["verdict"]),
        (&"at-least".into(), &"holds".into())
    );
    let note = row["note"].as_str().expect("a note");
    assert!(note.starts_with("scalevm is held up by nothing"), "{note}");
    assert!(
        note.contains("freebsd-epoch is held up by the lock \"swap"),
        "{note}"
    );
}
