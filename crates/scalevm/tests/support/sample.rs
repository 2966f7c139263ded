//! Short runs of workloads.

use super::command::{exits, json, scalevm};
use super::scratch::Scratch;
use serde_json::Value;

/// Runs to the exit code `code` with temporary files in `folder`; stdout and stderr.
pub fn run(folder: &Scratch, code: i32, arguments: &str) -> (String, String) {
    exits(code, scalevm(arguments).env("TMPDIR", &folder.0))
}

/// The first sample of a short run in which something is counted. On a busy computer a task may
/// have to wait for its first turn.
pub fn sample(folder: &Scratch, line: &str) -> Value {
    let take = |seconds: &str| {
        let line = format!("{line} -s 1 --warmup 0 --duration {seconds} --json");
        let mut lines = json(&run(folder, 0, &line).0).into_iter();
        lines.next().expect("a sample")
    };
    let counts = |sample: &Value| sample["total"].as_f64().is_some_and(|rate| rate > 0.0);
    let mut samples = ["0.05", "0.5", "5"].into_iter().map(take);
    let found = samples.find(counts);
    found.unwrap_or_else(|| panic!("{line} counts nothing in 5 s"))
}
