//! Workloads beyond the mappings of will-it-scale, as a user runs them.

mod support;

use std::{fs, thread};
use support::command::{json, number};
use support::sample::{run, sample};
use support::scratch::Scratch;

/// Those that are about memory and wake-ups.
const OURS: [&str; 19] = [
    "desktop",
    "exec1",
    "fork1",
    "futex1",
    "madvise1",
    "malloc1",
    "mmap2",
    "mprotect1",
    "mremap1",
    "near_fault1",
    "page_fault2",
    "page_fault3",
    "pft",
    "pipe1",
    "poll1",
    "reclaim1",
    "smaps1",
    "tlb_flush1",
    "tlb_flush2",
];

#[test]
fn our_own_vm_says_what_it_lacks() {
    let folder = Scratch::folder("lacking");
    for (workload, lacking) in [
        ("lock1", "record locks"),
        ("open1", "files with names"),
        ("context_switch1", "partners of tasks"),
    ] {
        for on in ["--on hosted", "--topology 1x2x1"] {
            let (_, errors) = run(&folder, 2, &format!("run {workload} {on}"));
            let expected = format!(
                "scalevm: {workload} needs {lacking}, which scalevm's own VM does not have; \
                 use --on os"
            );
            // The command warns of a busy computer first.
            assert_eq!(errors.lines().last(), Some(expected.as_str()), "{errors}");
        }
    }
}

#[test]
fn our_own_vm_runs_what_is_about_memory_and_wake_ups() {
    let folder = Scratch::folder("ours");
    let runs = |mode: &str| {
        for workload in OURS {
            for on in ["--on hosted", "--on hosted --vm freebsd-di"] {
                let line = format!("run {workload} -t 2 {on} --{mode}");
                assert_eq!(sample(&folder, &line)["mode"], mode);
            }
            for on in [
                "--machine pc-16c32t",
                "--machine arm64-16 --vm openbsd-unlocked",
            ] {
                let time = "--duration 0.001 --warmup 0";
                let line = format!("run {workload} -t 2 -s 1 {on} {time} --json --{mode}");
                let lines = json(&run(&folder, 0, &line).0);
                let rate = lines.first().and_then(|sample| sample["total"].as_f64());
                assert!(rate.is_some_and(|rate| rate > 0.0), "{line}: {lines:?}");
            }
        }
    };
    // Most of their time is that of the samples.
    thread::scope(|scope| {
        for mode in ["processes", "threads"] {
            scope.spawn(move || runs(mode));
        }
    });
}

/// One owner, alone and with a monitor: where one lock has all mappings, it waits for the monitor.
#[test]
fn a_monitor_stops_owners_where_one_lock_has_the_mappings() {
    let folder = Scratch::folder("monitor");
    let kept = |vm: &str| {
        let rate = |tasks: u32| {
            let line = "run smaps1 --threads --on sim -s 1";
            let line = format!("{line} --vm {vm} -t {tasks} --json");
            number(&json(&run(&folder, 0, &line).0)[0]["total"])
        };
        rate(2) / rate(1)
    };
    let [linux, ours] = ["linux-6.12", "scalevm"].map(kept);
    assert!(linux < 0.2, "the owner keeps {linux} of its rate");
    assert!(ours > 2.0 * linux, "{ours} and {linux}");
}

#[test]
fn a_build_has_a_rate_like_any_workload() {
    let folder = Scratch::folder("jobs");
    for on in [
        "--warmup 0 --duration 1",
        "--machine pc-16c32t --duration 0.1",
    ] {
        let lines = json(&run(&folder, 0, &format!("run build -t 2 -s 1 --json {on}")).0);
        let rate = number(&lines[0]["total"]);
        assert!((2.0..2000.0).contains(&rate), "{on}: {rate} jobs a second");
    }
}

#[test]
fn what_has_no_end_is_refused_one() {
    let folder = Scratch::folder("count");
    for (arguments, why) in [
        ("build -t 2 --count 1", "at least the number of tasks"),
        ("build --count 1 -s 0", "--samples 0"),
        ("build --count 1 --duration 1", "--duration"),
        ("--command true --count 1", "of your own"),
    ] {
        let (_, errors) = run(&folder, 2, &format!("run {arguments}"));
        assert!(errors.contains(why), "{arguments}: {errors}");
    }
    // Others than build have one, too.
    let (text, _) = run(&folder, 0, "run fork1 -t 2 -s 1 --count 11");
    assert!(text.contains(" real ") && text.contains(" sys\n"), "{text}");
}

#[test]
fn what_cannot_be_prepared_is_told() {
    let folder = Scratch::folder("gone");
    fs::remove_dir(&folder.0).expect("empty");
    let (_, errors) = run(&folder, 4, "run open1 -s 1 --warmup 0 --duration 0.05");
    assert!(
        errors.contains("open1: task 0: temporary file: "),
        "{errors}"
    );
    assert!(errors.contains(&folder.0.display().to_string()), "{errors}");
}
