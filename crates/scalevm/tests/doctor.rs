//! `scalevm doctor` on this computer, whatever it is.

mod support;

use support::command::{json, output, text};

#[test]
fn each_line_has_a_state_and_the_last_is_a_sentence() {
    let output = output("doctor");
    let text = text(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let (last, findings) = lines.split_last().expect("lines");
    assert_eq!(findings.len(), 26, "{text}");
    let state = |line: &&str| line.split(' ').next().unwrap_or_default().to_owned();
    let states: Vec<String> = findings.iter().map(state).collect();
    assert!(
        states
            .iter()
            .all(|one| ["ok", "unknown", "advice", "change"].contains(&one.as_str())),
        "{text}"
    );
    let would_be = last.starts_with("Figures from here would be doubtful: ");
    let may_be = last.starts_with("Figures from here may be doubtful: ");
    let is_fit = last.starts_with("This computer is fit for measurements");
    assert!(would_be || may_be || is_fit, "{text}");
    let code = if is_fit { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(code), "{text}");
    let changes = states.iter().any(|one| one == "change");
    assert_eq!(changes, would_be, "{text}");
}

#[test]
fn json_says_the_same() {
    let output = output("doctor --json");
    let records = json(&text(&output.stdout));
    let (diagnosis, findings) = records.split_last().expect("lines");
    for finding in findings {
        assert_eq!(finding["kind"], "finding", "{finding}");
        assert!(finding["found"].is_string(), "{finding}");
        assert_eq!(
            ["ok", "unknown"].contains(&finding["state"].as_str().expect("a state")),
            finding["advice"].is_null(),
            "{finding}"
        );
    }
    let count = |state: &str| findings.iter().filter(|one| one["state"] == state).count();
    assert_eq!(diagnosis["kind"], "diagnosis");
    for state in ["ok", "unknown", "advice", "change"] {
        assert_eq!(diagnosis[state], count(state));
    }
    let doubtful = diagnosis["doubtful"].as_bool().expect("a flag");
    assert!(doubtful || count("change") == 0);
    let code = if doubtful { 3 } else { 0 };
    assert_eq!(output.status.code(), Some(code));
}
