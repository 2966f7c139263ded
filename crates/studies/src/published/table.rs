//! A user's own curve: a line for each number of tasks, with the rate of all together and, of an
//! A/B pair, the rate after the change.
//!
//! ```text
//! # tasks  before  after
//! 1        1.25e6  1.3e6
//! 48       2.5e6   9.1e6
//! ```
//! Spaces, commas or semicolons lie between the numbers; what follows a `#`, and a first line of
//! words, are comments.

use super::check::points;
use super::{After, Curve, Error, Machine, Mode, Point, Source, Unit};

/// The curve of a workload in the table `text`, whose file is called `path`. Of its machine nothing
/// is known.
///
/// # Errors
/// A line that is none of a table, with its number; tasks that do not rise.
pub fn table(path: &str, text: &str, workload: &str, mode: Mode) -> Result<Curve, Error> {
    let rows = rows(text).and_then(|rows| check(&rows).map(|()| rows));
    let rows = rows.map_err(|why| Error {
        path: path.to_owned(),
        why,
    })?;
    let after: Vec<Point> = rows
        .iter()
        .filter_map(|row| Some(Point(row.tasks, row.after?)))
        .collect();
    Ok(Curve {
        id: format!("{workload}-{}", mode.name()),
        source: Source::own(path),
        machine: Machine::default(),
        workload: workload.to_owned(),
        mode,
        kernel: "measured".into(),
        unit: Unit::Operations,
        note: None,
        points: rows.iter().map(|row| Point(row.tasks, row.rate)).collect(),
        after: (!after.is_empty()).then(|| After {
            kernel: "changed".into(),
            points: after,
            ratio: None,
        }),
    })
}

/// A line.
struct Row {
    tasks: u32,
    rate: f64,
    after: Option<f64>,
}

fn rows(text: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut first = true;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let between = |c: char| c.is_whitespace() || c == ',' || c == ';';
        let words: Vec<&str> = line
            .split(between)
            .filter(|word| !word.is_empty())
            .collect();
        let has_numbers = words.iter().any(|word| word.parse::<f64>().is_ok());
        let is_head = std::mem::take(&mut first) && !has_numbers;
        if words.is_empty() || is_head {
            first = words.is_empty() && rows.is_empty();
            continue;
        }
        rows.push(row(&words).ok_or_else(|| {
            format!("line {number}: expected tasks, a rate, and perhaps the rate after a change")
        })?);
    }
    Ok(rows)
}

fn row(words: &[&str]) -> Option<Row> {
    let (&[tasks, rate], after) = words.split_first_chunk()?;
    let after = match after {
        [] => None,
        [after] => Some(after.parse().ok()?),
        _ => return None,
    };
    Some(Row {
        tasks: tasks.parse().ok()?,
        rate: rate.parse().ok()?,
        after,
    })
}

fn check(rows: &[Row]) -> Result<(), String> {
    let before: Vec<Point> = rows.iter().map(|row| Point(row.tasks, row.rate)).collect();
    points(&before)?;
    let after = rows
        .iter()
        .filter_map(|row| Some(Point(row.tasks, row.after?)));
    let after: Vec<Point> = after.collect();
    if !after.is_empty() {
        points(&after).map_err(|why| format!("after: {why}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Curve, String> {
        let curve = table("mine.txt", text, "mmap1", Mode::Threads);
        curve.map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_is_a_curve_or_a_pair() {
        let plain = read("tasks,rate\n\n1,1e6\n 4 ; 2.5e6 # the most\n").expect("a table");
        assert_eq!(plain.points, [Point(1, 1e6), Point(4, 2.5e6)]);
        assert_eq!(plain.id, "mmap1-threads");
        assert_eq!(plain.after, None);
        let pair = read("# tasks before after\n1 10 11\n2 20\n8 30 90").expect("a pair");
        assert_eq!(pair.points.len(), 3);
        assert_eq!(pair.change(), Some(Point(8, 3.0)));
    }

    #[test]
    fn what_is_no_table_is_told_with_its_line() {
        for (text, why) in [
            ("", "mine.txt: no points"),
            ("1 10\nx 20", "mine.txt: line 2: expected tasks, a rate"),
            ("1 10\n2", "mine.txt: line 2: expected tasks"),
            ("1 10 20 30", "mine.txt: line 1: expected tasks"),
            ("a b\nc d\n1 2", "mine.txt: line 2: expected tasks"),
            ("1 10\n2 0", "mine.txt: tasks and rates must be above zero"),
            (
                "1 10\n2 nan",
                "mine.txt: tasks and rates must be above zero",
            ),
            ("1 10\n1 20", "mine.txt: 1 tasks after 1"),
            (
                "1 10 -1",
                "mine.txt: after: tasks and rates must be above zero",
            ),
        ] {
            let said = read(text).expect_err(text);
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }
}
