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
            .all(|one| ["ok", "advice", "change"].contains(&one.as_str())),
        "{text}"
    );
    let doubtful = states.iter().any(|one| one == "change");
    let (code, beginning) = match doubtful {
        true => (3, "Figures from here would be doubtful: "),
        false => (0, "One can measure here"),
    };
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(last.starts_with(beginning), "{text}");
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
            finding["state"] == "ok",
            finding["advice"].is_null(),
            "{finding}"
        );
    }
    let count = |state: &str| findings.iter().filter(|one| one["state"] == state).count();
    assert_eq!(diagnosis["kind"], "diagnosis");
    for state in ["ok", "advice", "change"] {
        assert_eq!(diagnosis[state], count(state));
    }
    assert_eq!(diagnosis["doubtful"], count("change") > 0);
    let code = if count("change") > 0 { 3 } else { 0 };
    assert_eq!(output.status.code(), Some(code));
}
