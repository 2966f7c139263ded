//! `scalevm reproduce` as a user meets it.

use serde_json::Value;
use std::process::{Command, Output};

fn output(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalevm"));
    command.arg("reproduce").args(arguments.split_whitespace());
    command.output().expect("the command starts")
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "", "progress is for terminals");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn two_runs_are_the_same_and_have_all_fields() {
    let arguments = "--quick S3 --json";
    let (first, second) = (output(arguments), output(arguments));
    assert_eq!(text(&first), text(&second));
    let parse = |line| serde_json::from_str(line).expect("JSON");
    let rows: Vec<Value> = text(&first).lines().map(parse).collect();
    assert_eq!(rows.len(), 5);
    for row in &rows {
        assert_eq!(row["kind"], "reproduction");
        assert_eq!(row["system"], "S3");
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
                .is_some_and(|source| source.starts_with("seed 000"))
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
    // Too small for the seed's 12 and 96 processes, large enough for one figure of ours.
    let small = output("--quick --json --topology 1x2x2 S5");
    assert_eq!(text(&small).lines().count(), 3);
    let none = output("--quick --topology 1x2x2 S3");
    let errors = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(2));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert_eq!(output("S99").status.code(), Some(2));
}
