//! Waits for a lock as `profile` and perf count them. perf must be installed; it sees system calls
//! begin and end, and `profile` threads that go off CPU and come back.

mod support;

use std::fs;
use std::process::{Command, Stdio};
use support::command::{exits, json, number};
use support::place::Place;
use support::sees_locks;
use support::server::Server;

/// Seconds that perf watches.
const SPAN: f64 = 1.5;

/// Milliseconds of all threads in the system call `futex`, by perf's summary: a row for each thread
/// has the call's name, and how often, with how many errors, and for how long it was in it.
fn in_futex(summary: &str) -> f64 {
    let rows = summary.lines().map(|line| line.split_whitespace());
    let rows = rows.filter_map(|mut words| (words.next()? == "futex").then_some(words));
    let total = |mut words: std::str::SplitWhitespace<'_>| words.nth(2)?.parse::<f64>().ok();
    rows.map(|row| total(row).expect("a time")).sum()
}

#[test]
fn perf_counts_the_same_waits() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("profile-perf");
    let server = Server::new(&place);
    let pid = server.pid();
    let file = place.file("summary");
    // Threads that wait at a time, by both at once.
    let waiting = || {
        let mut perf = Command::new("perf");
        perf.args(["trace", "-s", "-o", &file, "-p", &pid.to_string()]);
        let perf = perf.args(["--", "sleep", &SPAN.to_string()]);
        let perf = perf
            .stderr(Stdio::piped())
            .spawn()
            .expect("it is installed");
        let line = format!("profile --pid {pid} --duration {SPAN} --json");
        let profile = json(&exits(0, &mut place.command(&line)).0).remove(0);
        let output = perf.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        let mut rows = profile["locks"].as_array().expect("locks").iter();
        let row = rows.find(|row| row["name"] == "pthread_mutex planted_mutex");
        let wait = number(&row.expect("the lock")["wait"]) / number(&profile["seconds"]);
        let summary = fs::read_to_string(&file).expect("a summary");
        (wait, in_futex(&summary) / 1e3 / SPAN)
    };
    let is_same = |&(profile, perf): &(f64, f64)| (0.85..1.18).contains(&(profile / perf));
    // On a busy computer they do not begin at the same time.
    let mut tries = (0..4)
        .map(|_| waiting())
        .inspect(|found| eprintln!("{found:?}"));
    assert!(tries.any(|found| is_same(&found)), "they differ each time");
    server.end();
}
