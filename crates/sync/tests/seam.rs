//! The seam costs nothing: through the machine contract an algorithm takes exactly
//! the instructions it takes when written straight on `core::sync::atomic`.

use std::path::PathBuf;
use std::process::Command;

/// The example beside this test's own binary.
fn seam() -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its binary");
    let profile = exe.ancestors().nth(2).expect("target/PROFILE/deps/test");
    profile.join("examples").join("seam")
}

/// Instructions of a run, as callgrind counts them.
fn instructions(case: &str, iterations: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(seam())
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

/// Instructions of one iteration; start-up cancels out, what is left of it
/// (a few dozen instructions that depend on addresses) rounds away.
fn per_iteration(case: &str) -> u64 {
    const N: u64 = 100_000;
    let delta = instructions(case, N + 1_000) - instructions(case, 1_000);
    (delta + N / 2) / N
}

fn same(algorithm: &str) {
    let machine = per_iteration(&format!("{algorithm}-machine"));
    let core = per_iteration(&format!("{algorithm}-core"));
    println!("{algorithm}: {machine} instructions through the machine, {core} by hand");
    // Without optimisation nothing is inlined, and only the work can be compared.
    if !cfg!(debug_assertions) {
        assert_eq!(machine, core, "{algorithm}");
    }
}

#[test]
fn mcs_costs_nothing() {
    same("mcs");
}

#[test]
fn epoch_costs_nothing() {
    same("epoch");
}
