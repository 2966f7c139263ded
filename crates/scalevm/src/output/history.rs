//! Histories as tables, and as JSON lines of `kind` "history".

use super::table::{align_right, with_header};
use super::{format, short};
use comfy_table::Table;
use serde_json::{Value, json};
use stats::change::FEWEST;
use stats::environment::Difference;
use stats::history::{Against, Key, Line, Of, Series, Shift};
use stats::verdict::{RunsError, Word};
use stats::{Time, general};

/// Prints a series: its subject, a row for each label, and the changes.
pub fn print(series: &Series, lines: &[Line<'_>], shifts: &[Shift<'_>]) {
    println!("{}", title(&series.key));
    format::print_of(&title(&series.key), &table(lines));
    for line in lines {
        let other = line.change.as_ref().filter(|change| notable(change));
        if let Some(list) = other.and_then(|change| listed(&change.differences)) {
            println!("{}: {list}", label(line.label));
        }
    }
    let drifting = |line: &Line<'_>| {
        let change = line.change.as_ref();
        change.is_some_and(|change| !change.in_turn && change.verdict.is_ok())
    };
    if lines.iter().any(drifting) {
        println!(
            "caution: the runs of different labels were not interleaved: a drift of the machine \
             counts as a change"
        );
    }
    print_shifts(series, lines, shifts);
}

fn print_shifts(series: &Series, lines: &[Line<'_>], shifts: &[Shift<'_>]) {
    if series.runs.len() < FEWEST {
        println!(
            "changes of level: {} of the {FEWEST} runs it takes to show one",
            series.runs.len()
        );
        return;
    }
    let mut shown = shifts.iter().filter(|shift| place(lines, shift).is_some());
    let Some(first) = shown.next() else {
        let where_else = if shifts.is_empty() {
            ""
        } else {
            " in these rows"
        };
        println!("changes of level: none shown{where_else}");
        return;
    };
    for shift in std::iter::once(first).chain(shown) {
        let change = &shift.change;
        let whence = if shift.within_label {
            "within one label, so of the machine: "
        } else {
            ""
        };
        println!(
            "change of level: {whence}{} → {} ({}, p = {}) from run {} on ({}, {})",
            short(change.before),
            short(change.after),
            percent(change.ratio()),
            general(change.p, 2),
            change.at + 1,
            label(&shift.run.label),
            when(shift.run.time),
        );
        if let Some(list) = listed(&shift.differences) {
            println!("  with it: {list}");
        }
    }
}

/// `mmap1, os, 2 processes, on Some CPU × 2, in operations/s`.
fn title(key: &Key) -> String {
    let system = match &key.vm {
        Some(vm) => format!("{vm} ({})", key.on),
        None => key.on.clone(),
    };
    let tasks = key.mode.count(key.tasks as usize);
    let (workload, machine, unit) = (&key.workload, &key.machine, &key.unit);
    format!("{workload}, {system}, {tasks}, on {machine}, in {unit}")
}

fn table(lines: &[Line<'_>]) -> Table {
    let mut table = with_header([
        "when",
        "label",
        "of",
        "median",
        "interval",
        "against the one before",
    ]);
    for line in lines {
        let change = line.change.as_ref();
        table.add_row([
            when(line.first),
            label(line.label),
            of(line.of),
            short(line.median.median),
            interval(line),
            change.map_or("–".into(), verdict),
        ]);
    }
    align_right(&mut table, 3..4);
    table
}

fn of(of: Of) -> String {
    let (count, what) = match of {
        Of::Runs(count) => (count, "run"),
        Of::Samples(count) => (count, "sample"),
        Of::Seeds(count) => (count, "seed"),
    };
    let of_one_run = if what == "sample" { " of 1 run" } else { "" };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}{of_one_run}")
}

/// With its level where that is not 95 %: few numbers do not reach it.
fn interval(line: &Line<'_>) -> String {
    let median = &line.median;
    let ends = format!("{}–{}", short(median.low), short(median.high));
    match median.level {
        0.0 => "–".into(),
        level if level < 0.95 => format!("{ends} ({} %)", general(100.0 * level, 3)),
        _ => format!("{ends} (95 %)"),
    }
}

/// The word and the ratio it rests on; without enough runs only how the medians lie.
fn verdict(change: &Against<'_>) -> String {
    match &change.verdict {
        Ok(verdict) => {
            let ratio = &verdict.ratio;
            let range = if ratio.is_bounded() {
                format!(" [{}, {}]", percent(ratio.low), percent(ratio.high))
            } else {
                String::new()
            };
            format!("{}: {}{range}", verdict.word, percent(ratio.estimate))
        }
        Err(RunsError::TooFew { .. }) => {
            format!("inconclusive (too few runs): {}", percent(change.ratio))
        }
        Err(error) => format!("not compared: {error}"),
    }
}

/// A change by this ratio.
fn percent(ratio: f64) -> String {
    if ratio.is_finite() {
        format!("{} %", signed(100.0 * (ratio - 1.0)))
    } else {
        "from 0".to_owned()
    }
}

/// With one decimal, or a few digits of a large number.
fn signed(value: f64) -> String {
    if value.abs() < 1e6 {
        format!("{value:+.1}")
    } else {
        format!("+{}", general(value, 4))
    }
}

/// Returns true if it may be a change.
fn notable(change: &Against<'_>) -> bool {
    let word = change.verdict.as_ref().map(|verdict| verdict.word);
    !matches!(word, Ok(Word::NoDifferenceShown))
}

fn listed(differences: &[Difference]) -> Option<String> {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// To the second.
fn when(time: Option<Time>) -> String {
    let text = time.map(|time| time.to_string());
    text.map_or("–".into(), |text| text[..19].replace('T', " "))
}

/// Commits are cut to twelve digits, as git does.
fn label(label: &str) -> String {
    let (commit, dirty) = match label.strip_suffix("-dirty") {
        Some(commit) => (commit, "-dirty"),
        None => (label, ""),
    };
    if commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        format!("{}{dirty}", &commit[..12])
    } else {
        label.to_owned()
    }
}

/// The line that a change of level begins in.
fn place(lines: &[Line<'_>], shift: &Shift<'_>) -> Option<usize> {
    let begins = |line: &Line<'_>| line.label == shift.run.label;
    lines.iter().position(begins)
}

/// Prints an object for each line.
pub fn print_json(key: &Key, lines: &[Line<'_>], shifts: &[Shift<'_>]) {
    for (index, line) in lines.iter().enumerate() {
        let shifts = shifts.iter();
        let mine = shifts.filter(|shift| place(lines, shift) == Some(index));
        let mut object = json!({
            "kind": "history",
            "label": line.label,
            "first": line.first,
            "last": line.last,
            "median": line.median.median,
            "low": line.median.low,
            "high": line.median.high,
            "level": line.median.level,
            "of": match line.of {
                Of::Runs(_) => "runs",
                Of::Samples(_) => "samples",
                Of::Seeds(_) => "seeds",
            },
            "runs": line.runs.iter().map(|run| json!({
                "time": run.time,
                "average": run.figure,
                "samples": run.samples,
                "seed": run.seed,
                "file": run.file,
            })).collect::<Vec<_>>(),
            "change": line.change.as_ref().map(change_json),
            "shifts": mine.map(shift_json).collect::<Vec<_>>(),
        });
        if let (Value::Object(object), Ok(Value::Object(key))) =
            (&mut object, serde_json::to_value(key))
        {
            object.extend(key);
        }
        println!("{object}");
    }
}

fn change_json(change: &Against<'_>) -> Value {
    let verdict = change.verdict.as_ref().ok();
    let word = verdict.map(|verdict| verdict.word);
    let ratio = verdict.map(|verdict| &verdict.ratio);
    let bounded = ratio.filter(|ratio| ratio.is_bounded());
    json!({
        "against": change.label,
        "word": word.map_or("inconclusive", Word::name),
        "more_runs": word.and_then(Word::more_runs),
        "reason": change.verdict.as_ref().err().map(ToString::to_string),
        "ratio": ratio.map_or(change.ratio, |ratio| ratio.estimate),
        "low": bounded.map(|ratio| ratio.low),
        "high": bounded.map(|ratio| ratio.high),
        "p": verdict.map(|verdict| verdict.rank.p),
        "in_turn": change.in_turn,
        "differences": change.differences,
    })
}

fn shift_json(shift: &Shift<'_>) -> Value {
    json!({
        "run": shift.change.at + 1,
        "time": shift.run.time,
        "before": shift.change.before,
        "after": shift.change.after,
        "p": shift.change.p,
        "within_label": shift.within_label,
        "differences": shift.differences,
    })
}
