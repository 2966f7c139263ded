//! Counts instructions of the examples that are built together with a test's binary.
#![allow(dead_code)] // each test uses a part of it

pub mod figures;

use std::path::PathBuf;
use std::process::Command;

fn binary(example: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its binary");
    let profile = exe.ancestors().nth(2).expect("target/PROFILE/deps/test");
    profile.join("examples").join(example)
}

/// The output of an example for the argument `case`.
pub fn says(example: &str, case: &str) -> String {
    let output = Command::new(binary(example)).arg(case).output();
    let output = output.expect("the example is next to the test: cargo build --examples");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Instructions of a run, as callgrind counts them: within functions whose name matches
/// `within`, if that is given.
pub fn instructions(example: &str, case: &str, iterations: u64, within: Option<&str>) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(within.map(|name| format!("--toggle-collect={name}")))
        .arg(binary(example))
        .args([case, &iterations.to_string()])
        .output()
        .expect("valgrind is needed to count instructions: apt-get install valgrind");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {log}");
    let line = log.lines().find(|line| line.contains("Collected"));
    let count = line.and_then(|line| line.split_whitespace().last());
    count
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("no count in {log}"))
}

/// Instructions of one iteration of `case`; start-up cancels out, and its remainder
/// (a few dozen instructions that depend on addresses or print the time) rounds away.
pub fn per_iteration(example: &str, case: &str) -> u64 {
    const N: u64 = 100_000;
    let run = |iterations| instructions(example, case, iterations, None);
    let delta = run(N + 1_000) - run(1_000);
    let each = (delta + N / 2) / N;
    println!("{case}: {each} instructions");
    each
}
