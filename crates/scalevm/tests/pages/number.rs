//! Numbers in the output of a command, and how a page shows them.

use super::support::command::json;
use serde_json::Value;

/// The number that `place` names in lines of JSON: `KEY=VALUE… PATH`, of the last line that has
/// these values the number at the path.
pub fn number(place: &str, stdout: &str) -> Result<String, String> {
    let (filters, path): (Vec<&str>, Vec<&str>) = place
        .split_whitespace()
        .partition(|word| word.contains('='));
    let has = |line: &Value, filter: &str| {
        let (key, value) = filter.split_once('=').unwrap_or_default();
        line[key].as_str() == Some(value)
    };
    let lines = json(stdout);
    let found = lines
        .iter()
        .rfind(|line| filters.iter().all(|filter| has(line, filter)));
    let found = found.ok_or_else(|| format!("no line has {}", filters.join(" ")))?;
    let path = path.join(" ").replace('.', "/");
    let value = found.pointer(&format!("/{path}")).and_then(Value::as_f64);
    value
        .map(plain)
        .ok_or_else(|| format!("no number at {path}"))
}

/// `1,234`, `12.3`, `0.567`, `0`.
pub fn plain(value: f64) -> String {
    if value == value.trunc() {
        return thousands(value);
    }
    match value.abs() {
        100.0.. => thousands(value.round()),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[test]
fn numbers_are_found_and_grouped() {
    let stdout = "{\"vm\":\"a\",\"n\":{\"m\":1234}}\n{\"vm\":\"b\",\"n\":{\"m\":0.5}}\n";
    assert_eq!(number("vm=a n.m", stdout).as_deref(), Ok("1,234"));
    assert_eq!(number("vm=b n.m", stdout).as_deref(), Ok("0.500"));
    assert!(number("vm=c n.m", stdout).is_err());
    assert!(number("vm=a m", stdout).is_err());
    let of = [0.0, -1234.0, 999.0, 1_234_567.0].map(plain);
    assert_eq!(of, ["0", "-1,234", "999", "1,234,567"]);
}
