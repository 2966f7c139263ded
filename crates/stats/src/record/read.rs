//! Reading result files back. Their content is not trusted.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::{Measurement, Record, Subject};
use crate::environment::Environment;
use crate::input::{for_each_line, from_json};
use crate::{InputError, Time};

/// Reads and validates the result file at `path`.
pub fn read(path: &str) -> Result<Vec<Record>, InputError> {
    let file = File::open(path).map_err(|source| InputError::Unreadable {
        file: path.into(),
        source,
    })?;
    parse(path, BufReader::new(file))
}

/// Reads and validates records, one per line. Skips blank lines and the command's other output, and
/// ignores unknown fields. The first damaged line is an error.
pub fn parse(file: &str, reader: impl BufRead) -> Result<Vec<Record>, InputError> {
    let mut records: Vec<Record> = Vec::new();
    for_each_line(file, reader, |text| {
        records.extend(line(text)?);
        Ok(())
    })?;
    if records.is_empty() {
        return Err(InputError::Whole {
            file: file.into(),
            reason: "no records".into(),
        });
    }
    Ok(records)
}

/// The record on a line; `None` if the line holds no result. The reason names neither file nor
/// line.
pub(crate) fn line(text: &str) -> Result<Option<Record>, String> {
    if text.trim().is_empty() || is_aside(text) {
        return Ok(None);
    }
    let record: Record = from_json(text)?;
    check(&record)?;
    Ok(Some(record))
}

/// Kinds of JSON lines that the command prints or stores besides results.
const ASIDES: [&str; 14] = [
    "attribution",
    "curve",
    "difference",
    "history",
    "lock",
    "ministat",
    "point",
    "prediction",
    "predictions",
    "profile",
    "reproduction",
    "self-test",
    "times",
    "verdict",
];

/// Returns true if a line is of one of these kinds.
fn is_aside(line: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: String,
    }
    serde_json::from_str::<Kind>(line).is_ok_and(|line| ASIDES.contains(&line.kind.as_str()))
}

/// A run, the unit of comparison: its samples, and its state at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub subject: Subject,
    /// The samples' totals, in order.
    pub totals: Vec<f64>,
    /// The mean of its totals.
    pub average: f64,
    /// True if it finished; a run that was cut short has no summary, or one that says so.
    pub complete: bool,
    /// When its last sample ended, if recorded.
    pub time: Option<Time>,
    /// The measured version, as the summary labels it.
    pub label: Option<String>,
    /// The machine, as its summary describes it.
    pub machine: Option<Box<Environment>>,
}

/// Groups records into runs, in the order in which the runs end. Samples belong to the next summary
/// of the same subject; those without a summary form an incomplete run. A summary without samples
/// (not stored) is a complete run.
pub fn runs(records: &[Record]) -> Vec<Run> {
    let (mut done, mut open): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
    for record in records {
        let Measurement {
            subject,
            average,
            time,
            ..
        } = record.measurement();
        let at = open.iter().position(|run| run.subject == *subject);
        let empty = Run {
            subject: subject.clone(),
            totals: Vec::new(),
            average: 0.0,
            complete: false,
            time: None,
            label: None,
            machine: None,
        };
        match record {
            Record::Sample(sample) => {
                let at = at.unwrap_or_else(|| {
                    open.push(empty);
                    open.len() - 1
                });
                open[at].totals.push(sample.total);
                open[at].time = *time;
                open[at].average = crate::ministat::mean(&open[at].totals);
            }
            Record::Summary(summary) => {
                let run = at.map_or(empty, |at| open.remove(at));
                done.push(Run {
                    average: *average,
                    complete: !summary.interrupted,
                    time: time.or(run.time),
                    label: summary.label.clone(),
                    machine: summary.machine.clone().map(Box::new),
                    ..run
                });
            }
        }
    }
    done.extend(open);
    done
}

/// Refuses values that no measurement can give.
fn check(record: &Record) -> Result<(), String> {
    let m = record.measurement();
    for (name, text) in [
        ("workload", &m.subject.workload),
        ("on", &m.subject.on),
        ("unit", &m.subject.unit),
    ] {
        require(!text.is_empty(), || format!("`{name}` is empty"))?;
    }
    require(m.subject.tasks > 0, || "`tasks` is 0".into())?;
    require(m.sample > 0, || "`sample` is 0".into())?;
    require(m.seconds > 0.0, || format!("`seconds` is {}", m.seconds))?;
    check_rates(record)?;
    if let Record::Summary(summary) = record {
        require(summary.stddev.is_none_or(|value| value >= 0.0), || {
            format!("`stddev` is {:?}", summary.stddev)
        })?;
        summary
            .machine
            .as_ref()
            .map_or(Ok(()), |machine| machine.check())?;
    }
    Ok(())
}

/// Refuses rates that contradict each other.
fn check_rates(record: &Record) -> Result<(), String> {
    let m = record.measurement();
    for (name, value) in [
        ("min", m.min),
        ("max", m.max),
        ("total", m.total),
        ("average", m.average),
    ] {
        require(value >= 0.0, || format!("`{name}` is {value}"))?;
    }
    // Sums and quotients were rounded; a larger deviation is damage.
    let slack = 1e-9 * m.max.max(m.average);
    require(
        m.min <= m.average + slack && m.average <= m.max + slack,
        || {
            format!(
                "`average` {} is not between `min` {} and `max` {}",
                m.average, m.min, m.max
            )
        },
    )?;
    let parts = match record {
        Record::Sample(_) => m.subject.tasks,
        Record::Summary(_) => m.sample,
    };
    require(
        (m.average * f64::from(parts) - m.total).abs() <= 1e-9 * m.total,
        || {
            format!(
                "`total` {} is not {parts} times `average` {}",
                m.total, m.average
            )
        },
    )
}

fn require(condition: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(reason()) }
}
