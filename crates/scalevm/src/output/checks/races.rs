//! The results of a search, as text or JSON.

use checks::races::{Failure, Found};
use serde_json::json;
use stats::count;
use std::time::Instant;

/// One scenario's result.
pub struct Row<'a> {
    /// The scenario or planted bug.
    pub name: &'a str,
    /// Its planted bug; empty for real code.
    pub about: &'a str,
    /// The search's result.
    pub found: Found,
}

/// Prints rows as they come, and sums them up.
pub struct Report {
    json: bool,
    /// True if failures are the aim.
    planted: bool,
    begun: Instant,
    rows: u64,
    runs: u64,
    failed_rows: u64,
}

impl Report {
    /// An empty report.
    pub fn new(json: bool, planted: bool) -> Self {
        Report {
            json,
            planted,
            begun: Instant::now(),
            rows: 0,
            runs: 0,
            failed_rows: 0,
        }
    }

    /// Prints one.
    pub fn row(&mut self, row: &Row<'_>) {
        self.rows += 1;
        self.runs += row.found.runs;
        self.failed_rows += u64::from(!row.found.failures.is_empty());
        if self.json {
            self.print_json(row)
        } else {
            self.print_text(row)
        }
    }

    /// Prints the sums. Returns true if all is good.
    pub fn end(self) -> bool {
        let Report { rows, runs, .. } = self;
        let good = if self.planted {
            self.failed_rows == rows
        } else {
            self.failed_rows == 0
        };
        let seconds = self.begun.elapsed().as_secs_f64();
        if self.json {
            let line = json!({
                "record": "summary", "planted": self.planted, "rows": rows, "runs": runs,
                "failed": self.failed_rows, "good": good,
            });
            println!("{line}");
            return good;
        }
        let runs = count(runs, "run");
        if self.planted {
            let found = self.failed_rows;
            let bugs = count(rows, "planted bug");
            println!("{found} of {bugs} found; {runs} in {seconds:.1} s");
        } else {
            let failed = match self.failed_rows {
                0 => "none failed".into(),
                failed => format!("{failed} FAILED"),
            };
            let scenarios = count(rows, "scenario");
            println!("{scenarios}, {failed}; {runs} in {seconds:.1} s");
        }
        good
    }

    fn print_text(&self, row: &Row<'_>) {
        let (runs, failed) = (row.found.runs, row.found.failures.len());
        let name = row.name;
        let result = match (self.planted, row.found.failures.first_key_value()) {
            (true, Some((seed, _))) => {
                let rate = failed as f64 * 1000.0 / runs as f64;
                format!(
                    "found with seed {seed}; {rate:.0} in 1000 fail: {}",
                    row.about
                )
            }
            (true, None) => format!("NOT FOUND in {}: {}", count(runs, "run"), row.about),
            (false, Some(_)) => format!("{}, {failed} FAILED", count(runs, "run")),
            (false, None) => count(runs, "run"),
        };
        println!("{name:<32} {result}");
        if let Some((seed, Failure { machine, what, .. })) = row.found.failures.first_key_value() {
            println!(
                "  seed {seed} ({machine}): {}",
                what.replace('\n', "\n    ")
            );
            println!("  again: {}", self.replay(name, *seed));
        }
    }

    fn print_json(&self, row: &Row<'_>) {
        let failures = row.found.failures.values();
        let preempted = failures.filter(|failure| failure.preempted);
        let mut line = json!({
            "record": if self.planted { "planted" } else { "scenario" },
            "name": row.name, "about": row.about, "runs": row.found.runs,
            "failed": row.found.failures.len(),
            "preempted": {"runs": row.found.preempted, "failed": preempted.count()},
        });
        if let Some((seed, failure)) = row.found.failures.first_key_value() {
            line["seed"] = json!(seed);
            line["machine"] = json!(failure.machine);
            line["what"] = json!(failure.what);
            line["again"] = json!(self.replay(row.name, *seed));
        }
        println!("{line}");
    }

    /// The command that shows a failure again.
    fn replay(&self, name: &str, seed: u64) -> String {
        let option = if self.planted { "--planted" } else { "--only" };
        format!("scalevm check races {option} {name} --seed {seed}")
    }
}
