//! Files of numbers, and files that `run --json` or `sweep --json` has written.

use super::rule;
use crate::cli::CompareArgs;
use crate::output::verdict::{self, Comparison, Series};
use bench::Failure;
use stats::ministat::{Dataset, MOST};
use stats::record::{Run, Subject};
use stats::store::{self, File};
use stats::verdict::{Better, Rule, judge};
use stats::{Exit, InputError};
use std::fs;
use std::io::{BufRead, BufReader};

/// Compares each file with the first.
pub fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let files = &args.operands;
    let unavailable = |why: &str| Err(Failure::Unavailable(why.to_owned()));
    if args.lower_is_better && of_results(files)? > 0 {
        return unavailable(
            "--lower-is-better applies only to files of numbers; results are rates",
        );
    }
    if !args.prepare.is_empty() || !args.cleanup.is_empty() {
        return unavailable(
            "--prepare and --cleanup go with --workload and --command: nothing is run here",
        );
    }
    if files.len() > MOST {
        return Err(Failure::Unavailable(format!(
            "expected at most {MOST} files, found {}",
            files.len()
        )));
    }
    match of_results(files)? {
        _ if files.is_empty() => {
            unavailable("expected files or operands to compare (see `scalevm compare --help`)")
        }
        0 => numbers(args),
        all if all == files.len() && all > 1 => results(args),
        1 if files.len() == 1 => {
            unavailable("expected two result files, e.g. before.jsonl after.jsonl")
        }
        _ => unavailable("expected files of one kind, found results and numbers"),
    }
}

/// The number of files that hold results.
fn of_results(files: &[String]) -> Result<usize, InputError> {
    let mut count = 0;
    for file in files {
        count += usize::from(holds_results(file)?);
    }
    Ok(count)
}

/// Returns true if the first line that is not blank begins a JSON object. Standard input is read
/// once only and must hold numbers.
fn holds_results(path: &str) -> Result<bool, InputError> {
    if path == "-" {
        return Ok(false);
    }
    let unreadable = |source| InputError::Unreadable {
        file: path.into(),
        source,
    };
    let mut reader = BufReader::new(fs::File::open(path).map_err(unreadable)?);
    loop {
        let bytes = reader.fill_buf().map_err(unreadable)?;
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace());
        let (blank, length) = (blank.count(), bytes.len());
        if blank < length || length == 0 {
            return Ok(bytes.get(blank) == Some(&b'{'));
        }
        reader.consume(length);
    }
}

/// The kind of numbers in files.
struct Numbers<'a> {
    about: &'a str,
    unit: &'a str,
    simulated: bool,
    better: Better,
}

const NUMBERS: Numbers<'static> = Numbers {
    about: "files of numbers",
    unit: "",
    simulated: false,
    better: Better::Higher,
};

const NUMBERS_OF_TIME: Numbers<'static> = Numbers {
    about: "files of times",
    unit: "s",
    better: Better::Lower,
    ..NUMBERS
};

/// Does the work of ministat; with `--verdict` more.
fn numbers(args: &CompareArgs) -> Result<u8, Failure> {
    let column = args.table.column();
    let sets: Result<Vec<Dataset>, _> = args
        .operands
        .iter()
        .map(|file| Dataset::read(file, &column))
        .collect();
    let sets = sets?;
    let times = sets[0].are_times();
    if let Some(other) = sets.iter().find(|set| set.are_times() != times) {
        return Err(Failure::Unavailable(format!(
            "{} and {}: numbers with a unit of time cannot be compared with numbers without one",
            sets[0].name(),
            other.name()
        )));
    }
    let kind = match (times, args.lower_is_better) {
        (true, _) => NUMBERS_OF_TIME,
        (false, true) => Numbers {
            better: Better::Lower,
            ..NUMBERS
        },
        (false, false) => NUMBERS,
    };
    let options = args.table.options();
    if args.json {
        verdict::print_sets_json(&sets, &options)
    } else {
        verdict::print_sets(kind.about, &sets, &options)
            .map_err(|error| Failure::Unavailable(error.to_string()))?
    }
    let mut exit = Exit::Success;
    if args.verdict {
        let base = &sets[0];
        for set in &sets[1..] {
            let sides = [base, set].map(|set| (set.name(), set.points()));
            exit = worse(exit, judged(args, &kind, sides)?);
        }
    }
    Ok(exit.code())
}

/// Compares the runs of the files, point by point.
fn results(args: &CompareArgs) -> Result<u8, Failure> {
    let mut files = Vec::new();
    for file in &args.operands {
        let store = store::read(&[file])?;
        for warning in &store.warnings {
            eprintln!("scalevm: warning: {warning}");
        }
        let mut runs: Vec<Run> = store.files.iter().flat_map(File::runs).collect();
        runs.retain(|run| run.complete);
        files.push((file.as_str(), runs));
    }
    let (first, _) = &files[0];
    let mut points: Vec<Subject> = Vec::new();
    for run in &files[0].1 {
        let known = points.iter().any(|point| alike(point, &run.subject));
        let common = || {
            files[1..].iter().all(|file| {
                file.1
                    .iter()
                    .any(|other| alike(&run.subject, &other.subject))
            })
        };
        if !known && common() {
            points.push(run.subject.clone());
        }
    }
    if points.is_empty() {
        return Err(Failure::Unavailable(format!(
            "{first}: no complete run of a workload, number and kind of tasks that all files have"
        )));
    }
    let mut exit = Exit::Success;
    for (index, point) in points.iter().enumerate() {
        if index > 0 && !args.json {
            println!();
        }
        let mut sides = Vec::new();
        for (file, runs) in &files {
            let runs: Vec<&Run> = runs
                .iter()
                .filter(|run| alike(&run.subject, point))
                .collect();
            if let Some(other) = runs.iter().find(|run| run.subject != runs[0].subject) {
                return Err(Failure::Unavailable(format!(
                    "{file}: expected runs of one system, found {} on {} and on {}",
                    point.workload,
                    system(&runs[0].subject),
                    system(&other.subject)
                )));
            }
            sides.push((*file, runs));
        }
        exit = worse(exit, compare_point(args, point, &sides)?);
    }
    Ok(exit.code())
}

/// One workload at one number of tasks: the runs of each file.
fn compare_point(
    args: &CompareArgs,
    point: &Subject,
    sides: &[(&str, Vec<&Run>)],
) -> Result<Exit, Failure> {
    let tasks = point.mode.count(point.tasks as usize);
    let about = format!("{}, {tasks}, {}", point.workload, point.unit);
    let averages: Vec<Vec<f64>> = sides
        .iter()
        .map(|(_, runs)| runs.iter().flat_map(|run| independent(run)).collect())
        .collect();
    let judgeable = averages.iter().all(|runs| runs.len() > 1);
    if !args.json {
        println!("{about}");
        // Too few runs: only the distribution of the samples can be shown.
        let shown = if judgeable {
            averages.clone()
        } else {
            sides
                .iter()
                .map(|(_, runs)| runs.iter().flat_map(|run| run.totals.clone()).collect())
                .collect()
        };
        let series = sides.iter().zip(&shown);
        let series: Vec<Series<'_>> = series
            .map(|((file, _), rates)| Series::new(file, rates))
            .collect();
        verdict::print_table(&about, &series, &args.table.options());
    }
    if !judgeable {
        let why = "samples of one run are not independent and prove nothing; \
                   for a verdict each file needs 4 runs or more";
        if args.json {
            println!(
                "{}",
                serde_json::json!({
                    "kind": "verdict", "about": about, "word": "inconclusive", "reason": why,
                })
            )
        } else {
            println!("verdict: inconclusive: {why}")
        }
        return Ok(Exit::Inconclusive);
    }
    let all = sides.iter().flat_map(|(_, runs)| runs);
    let simulated = all.into_iter().all(|run| is_simulated(&run.subject));
    let mut exit = Exit::Success;
    for ((file, _), runs) in sides.iter().zip(&averages).skip(1) {
        let pair = [
            (sides[0].0, averages[0].as_slice()),
            (*file, runs.as_slice()),
        ];
        let kind = Numbers {
            about: &about,
            unit: &point.unit,
            simulated,
            better: Better::Higher,
        };
        exit = worse(exit, judged(args, &kind, pair)?);
    }
    Ok(exit)
}

/// The figures of a run that may be counted: its mean, because samples of one run share
/// its luck; of a simulated one all samples, since each had a machine of its own.
fn independent(run: &Run) -> Vec<f64> {
    if is_simulated(&run.subject) {
        run.totals.clone()
    } else {
        vec![run.average]
    }
}

fn is_simulated(subject: &Subject) -> bool {
    subject.on == "sim"
}

/// Judges B's runs against A's and prints the verdict.
fn judged(
    args: &CompareArgs,
    kind: &Numbers<'_>,
    [a, b]: [(&str, &[f64]); 2],
) -> Result<Exit, Failure> {
    let rule = Rule {
        better: kind.better,
        ..rule(args, kind.simulated)
    };
    let judgement = judge(a.1, b.1, &rule);
    let judgement = judgement
        .map_err(|error| Failure::Unavailable(format!("A is {}, B is {}: {error}", a.0, b.0)))?;
    let comparison = Comparison {
        about: kind.about,
        unit: kind.unit,
        better: kind.better,
        a: Series::new(a.0, a.1),
        b: Series::new(b.0, b.1),
        minimum_effect: rule.minimum_effect,
        verdict: judgement,
        interleaved: false,
        simulated: kind.simulated,
    };
    if args.json {
        verdict::print_json(&comparison, None)
    } else {
        verdict::print(&comparison)
    }
    Ok(judgement.exit())
}

/// Returns true if two runs may be compared: their systems may differ, their work may not.
fn alike(a: &Subject, b: &Subject) -> bool {
    (&a.workload, a.tasks, a.mode, &a.unit) == (&b.workload, b.tasks, b.mode, &b.unit)
}

fn system(subject: &Subject) -> &str {
    subject.vm.as_deref().unwrap_or(&subject.on)
}

/// A regression outweighs an inconclusive result, and that outweighs success.
fn worse(a: Exit, b: Exit) -> Exit {
    let all = [a, b];
    let found = [Exit::Regressed, Exit::Inconclusive]
        .into_iter()
        .find(|exit| all.contains(exit));
    found.unwrap_or(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::worse;
    use stats::Exit::{Inconclusive, Regressed, Success};

    #[test]
    fn the_worst_point_decides() {
        assert_eq!(worse(Success, Success), Success);
        assert_eq!(worse(Success, Inconclusive), Inconclusive);
        assert_eq!(worse(Inconclusive, Regressed), Regressed);
        assert_eq!(worse(Regressed, Success), Regressed);
    }
}
