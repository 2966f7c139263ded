//! A watched lock that nobody watches takes exactly the lock's instructions, and a
//! profile that is not running a handful more.

use std::path::PathBuf;
use std::process::Command;

/// The example beside this test's own binary.
fn example() -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its binary");
    let profile = exe.ancestors().nth(2).expect("target/PROFILE/deps/test");
    profile.join("examples").join("watch")
}

/// Instructions of a run, as callgrind counts them.
fn instructions(case: &str, iterations: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(example())
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

/// Instructions of one iteration; start-up, and what printing the time takes, rounds
/// away.
fn per_iteration(case: &str) -> u64 {
    const N: u64 = 100_000;
    let delta = instructions(case, N + 1_000) - instructions(case, 1_000);
    let each = (delta + N / 2) / N;
    println!("{case}: {each} instructions");
    each
}

#[test]
fn off_costs_nothing_and_stopped_next_to_nothing() {
    let bare = per_iteration("bare");
    let off = per_iteration("off");
    let stopped = per_iteration("profile-stopped");
    let watched = ["profile", "order", "order-nested", "both"].map(per_iteration);
    // Without optimisation nothing is inlined, and only the work can be compared.
    if !cfg!(debug_assertions) {
        assert_eq!(off, bare);
        assert!(stopped <= bare + 8, "{stopped} against {bare}");
        // Whoever watches does something: the cases are what they are called.
        assert!(watched.iter().all(|&each| each > stopped), "{watched:?}");
    }
}
