//! Comparisons: ministat's table, and the verdict below it or as JSON.

use super::format;
use super::table::{align_right, with_header};
use serde_json::{Value, json};
use stats::environment::Environment;
use stats::ministat::{Count, Dataset, Difference, FEWEST, Options, report};
use stats::verdict::{Better, Rate, Ratio, SelfTest, Verdict, Welch, Word};
use stats::{InputError, figure, general};

/// Two series of runs and their comparison.
pub struct Comparison<'a> {
    /// One line on the runs.
    pub about: &'a str,
    /// Unit of the numbers.
    pub unit: &'a str,
    /// The direction of an improvement.
    pub better: Better,
    /// The base.
    pub a: Series<'a>,
    /// The series that is judged.
    pub b: Series<'a>,
    /// The smallest difference that matters, as a share.
    pub minimum_effect: f64,
    /// The judgement.
    pub verdict: Verdict,
    /// True if A and B are known to have been run in turn.
    pub interleaved: bool,
    /// True if the runs are simulated: then the model's error bounds what can be told.
    pub simulated: bool,
}

/// The rates of the runs of one side.
pub struct Series<'a> {
    name: &'a str,
    rates: &'a [f64],
}

impl<'a> Series<'a> {
    /// In the order of the runs.
    pub fn new(name: &'a str, rates: &'a [f64]) -> Self {
        Series { name, rates }
    }

    fn json(&self) -> Value {
        json!({ "name": self.name, "runs": self.rates })
    }
}

/// Prints ministat's report on `series`; nothing where there are too few numbers for it.
pub fn print_table(about: &str, series: &[Series<'_>], options: &Options) {
    if series.iter().any(|one| one.rates.len() < FEWEST) {
        return;
    }
    let sets: Result<Vec<Dataset>, InputError> = series
        .iter()
        .map(|one| Dataset::new(one.name, one.rates.to_vec()))
        .collect();
    // Too few or too many, which have been refused where they were given.
    if let Ok(sets) = sets {
        print_sets(about, &sets, options).unwrap_or_default();
    }
}

/// Prints ministat's report, or in other formats its table alone.
pub fn print_sets(about: &str, sets: &[Dataset], options: &Options) -> Result<(), Count> {
    print!("{}", report(sets, options)?);
    if !format::is_text() {
        let mut table = with_header(["set", "n", "min", "max", "median", "average", "stddev"]);
        for set in sets {
            let figures = [set.min(), set.max(), set.median(), set.mean(), set.stddev()];
            let mut cells = vec![set.name().to_owned(), set.points().len().to_string()];
            cells.extend(figures.map(|value| figure(value, 8)));
            table.add_row(cells);
        }
        align_right(&mut table, 1..);
        format::print_of(about, &table);
    }
    Ok(())
}

/// Prints the verdict: its grounds, then the word.
pub fn print(comparison: &Comparison<'_>) {
    let Comparison { verdict, a, b, .. } = comparison;
    let Verdict { rank, welch, .. } = verdict;
    println!("{:<15} {}", "B / A", interval(&verdict.ratio));
    let exact = if rank.exact { "exact" } else { "approximate" };
    println!(
        "{:<15} p = {}, {exact} (Mann-Whitney U = {})",
        "rank test",
        general(rank.p, 2),
        general(rank.u, 6)
    );
    println!(
        "{:<15} B / A {}; {}",
        "means",
        interval(&verdict.means),
        test_of_means(welch)
    );
    if comparison.better == Better::Lower {
        println!("{:<15} less: the numbers are times or costs", "better");
    }
    let percent = 100.0 * comparison.minimum_effect;
    println!("{:<15} {} %", "minimum effect", general(percent, 4));
    println!(
        "{:<15} {} of A, {} of B",
        "runs", verdict.runs.0, verdict.runs.1
    );
    if !comparison.interleaved {
        println!(
            "{:<15} the runs are not known to be interleaved: a drift of the machine counts as a \
             difference",
            "caution"
        );
    }
    let bound = match verdict.word {
        Word::NoDifferenceShown if comparison.simulated => format!(
            "; the model cannot tell rates apart that differ by less than {} times",
            general(1.0 + comparison.minimum_effect, 4)
        ),
        _ => String::new(),
    };
    println!(
        "verdict: {}: {} against {}{bound}",
        verdict.word, b.name, a.name
    );
    if !format::is_text() {
        let mut table = with_header(["A", "B", "B / A", "low", "high", "p", "verdict"]);
        let ratio = &verdict.ratio;
        let mut cells = vec![
            a.name.to_owned(),
            b.name.to_owned(),
            stats::ratio(ratio.estimate),
        ];
        cells.extend([ratio.low, ratio.high].map(|end| {
            if ratio.is_bounded() {
                stats::ratio(end)
            } else {
                "–".to_owned()
            }
        }));
        cells.extend([general(rank.p, 2), verdict.word.to_string()]);
        table.add_row(cells);
        align_right(&mut table, 2..6);
        format::print_of(comparison.about, &table);
    }
}

/// Prints the comparison as one JSON object; `machine` is null for runs from files.
pub fn print_json(comparison: &Comparison<'_>, machine: Option<&Environment>) {
    let verdict = &comparison.verdict;
    let line = json!({
        "kind": "verdict",
        "about": comparison.about,
        "unit": comparison.unit,
        "better": comparison.better,
        "interleaved": comparison.interleaved,
        "simulated": comparison.simulated,
        "a": comparison.a.json(),
        "b": comparison.b.json(),
        "minimum_effect": comparison.minimum_effect,
        "word": verdict.word.name(),
        "more_runs": verdict.word.more_runs(),
        "exit_code": verdict.exit().code(),
        "ratio": ratio(&verdict.ratio),
        "rank": { "u": verdict.rank.u, "p": verdict.rank.p, "exact": verdict.rank.exact },
        "means": ratio(&verdict.means),
        "welch": { "t": verdict.welch.t, "freedom": verdict.welch.freedom, "p": verdict.welch.p },
        "machine": machine,
    });
    println!("{line}");
}

/// Prints ministat's figures as one JSON object: the sets, and each one's difference to the first.
pub fn print_sets_json(sets: &[Dataset], options: &Options) {
    let entry = |(index, set): (usize, &Dataset)| {
        let compared = options.confidence.filter(|_| index > 0);
        let difference = compared.map(|confidence| {
            let difference = Difference::between(&sets[0], set, confidence);
            json!({
                "confidence": confidence.percent(),
                "proven": difference.proven(),
                "absolute": difference.absolute,
                "absolute_error": difference.absolute_error,
                "percent": difference.percent,
                "percent_error": difference.percent_error,
                "pooled": difference.pooled,
            })
        });
        json!({
            "name": set.name(),
            "n": set.points().len(),
            "min": set.min(),
            "max": set.max(),
            "median": set.median(),
            "average": set.mean(),
            "stddev": set.stddev(),
            "difference": difference,
        })
    };
    let sets: Vec<Value> = sets.iter().enumerate().map(entry).collect();
    println!("{}", json!({ "kind": "ministat", "sets": sets }));
}

/// Prints a self-test of `name` as one JSON object.
pub fn print_self_test_json(name: &str, about: &str, found: &SelfTest, machine: &Environment) {
    let line = json!({
        "kind": "self-test",
        "name": name,
        "about": about,
        "runs": found.runs,
        "rank": rate(&found.rank),
        "welch": rate(&found.welch),
        "blocks": rate(&found.blocks),
        "expected": found.expected,
        "sound": found.sound(),
        "machine": machine,
    });
    println!("{line}");
}

fn interval(ratio: &Ratio) -> String {
    let [estimate, low, high] = [ratio.estimate, ratio.low, ratio.high].map(stats::ratio);
    if ratio.is_bounded() {
        format!("{estimate}, 95 % interval [{low}, {high}]")
    } else {
        format!("{estimate}, too few runs for a 95 % interval")
    }
}

fn test_of_means(welch: &Welch) -> String {
    let (t, p) = (general(welch.t, 4), general(welch.p, 2));
    if welch.t.is_finite() {
        format!("Welch t = {t}, p = {p}")
    } else {
        format!("no Welch t, as the runs of each side are all equal; p = {p}")
    }
}

/// An end that is infinite becomes null.
fn ratio(ratio: &Ratio) -> Value {
    json!({ "estimate": ratio.estimate, "low": ratio.low, "high": ratio.high })
}

fn rate(rate: &Rate) -> Value {
    json!({
        "times": rate.times,
        "of": rate.of,
        "share": rate.share(),
        "low": rate.low,
        "high": rate.high,
    })
}
