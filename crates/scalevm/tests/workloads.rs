//! Workloads beyond the mappings of will-it-scale, as a user runs them.

mod support;

use serde_json::Value;
use std::fs;
use std::sync::{Mutex, PoisonError};
use support::command::{exits, json, number, scalevm};
use support::scratch::Scratch;

const WORKLOADS: [&str; 17] = [
    "context_switch1",
    "desktop",
    "exec1",
    "exim",
    "fork1",
    "fragment",
    "futex1",
    "lock1",
    "madvise1",
    "mprotect1",
    "mremap1",
    "open1",
    "pipe1",
    "poll1",
    "reclaim1",
    "signal1",
    "unix1",
];

/// One test at a time: they look at all children of this process.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs to the exit code `code` with temporary files in `folder`; stdout and stderr.
fn run(folder: &Scratch, code: i32, arguments: &str) -> (String, String) {
    exits(code, scalevm(arguments).env("TMPDIR", &folder.0))
}

/// The first sample of a short run in which something is counted. On a busy computer a task may have to wait for its
/// first turn.
fn sample(folder: &Scratch, line: &str) -> Value {
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

/// Whether children that lost their parent have become this process's.
fn orphans() -> bool {
    // SAFETY: only one test runs, and it has waited for the children that it has started itself.
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) != -1 }
}

#[test]
fn each_runs_in_both_modes_and_leaves_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: changes only the new parent of orphans.
    let adopted = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    assert_eq!(adopted, 0);
    let folder = Scratch::folder("modes");
    for workload in WORKLOADS {
        for mode in ["processes", "threads"] {
            let line = format!("run {workload} -t 2 --{mode}");
            let sample = sample(&folder, &line);
            assert_eq!(sample["workload"], workload);
            assert_eq!(sample["mode"], mode);
            let left = folder.files();
            assert!(left.is_empty(), "{line} left {left:?}");
            assert!(!orphans(), "{line} left a child");
        }
    }
}

#[test]
fn our_own_vm_says_what_it_lacks() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Scratch::folder("ours");
    for workload in [
        "desktop",
        "exec1",
        "fork1",
        "futex1",
        "madvise1",
        "mmap2",
        "mprotect1",
        "mremap1",
        "page_fault2",
        "page_fault3",
        "pipe1",
        "poll1",
        "reclaim1",
        "tlb_flush1",
    ] {
        for mode in ["processes", "threads"] {
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
    }
}

/// Runs `jobs` jobs of a build by two tasks; seconds real, user and sys.
fn build(folder: &Scratch, jobs: u64, arguments: &str) -> [f64; 3] {
    let line = format!("run build -t 2 -s 1 --count {jobs} --json {arguments}");
    let lines = json(&run(folder, 0, &line).0);
    let [times] = lines.as_slice() else {
        panic!("{line}: {lines:?}")
    };
    assert_eq!(times["kind"], "times");
    assert_eq!(times["count"], jobs);
    assert!(folder.files().is_empty(), "{line} left files");
    assert!(!orphans(), "{line} left a child");
    ["real", "user", "sys"].map(|name| number(&times[name]))
}

#[test]
fn a_build_runs_everywhere_and_says_what_it_took() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: changes only the new parent of orphans.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
    let folder = Scratch::folder("build");
    const JOBS: u64 = 5;
    // A lower bound of a job's computation, on any core.
    const COMPUTED: f64 = 0.002;
    for mode in ["--processes", "--threads"] {
        for on in ["--on os", "--on hosted", "--on hosted --vm freebsd-di"] {
            let [real, user, sys] = build(&folder, JOBS, &format!("{on} {mode}"));
            assert!(user > COMPUTED * JOBS as f64, "{on} {mode}: {user}");
            assert!(sys > 0.0, "{on} {mode}");
            assert!(user <= 2.0 * real + 0.1, "{on} {mode}: {user} of {real}");
        }
        for vm in ["scalevm", "freebsd-di"] {
            let on = format!("--machine pc-16c32t --vm {vm} {mode}");
            let [real, user, sys] = build(&folder, JOBS, &on);
            // Of 8 ms each, varied; the tasks' time is theirs or the kernel's.
            let each = user / JOBS as f64;
            assert!((0.006..0.010).contains(&each), "{on}: {each}");
            assert!((0.05..0.2).contains(&(sys / user)), "{on}: {sys}");
            let idle = 2.0 * real - user - sys;
            assert!((0.0..2.0 * real).contains(&idle), "{on}: {idle}");
            // One task has done three of the five.
            assert!(idle > 0.1 * real, "{on}: {idle}");
            assert_eq!(
                [real, user, sys],
                build(&folder, JOBS, &on),
                "the same seed"
            );
        }
    }
}

#[test]
fn a_build_has_a_rate_like_any_workload() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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
fn what_can_not_be_prepared_is_told() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Scratch::folder("gone");
    fs::remove_dir(&folder.0).expect("empty");
    let (_, errors) = run(&folder, 4, "run open1 -s 1 --warmup 0 --duration 0.05");
    assert!(
        errors.contains("open1: task 0: temporary file: "),
        "{errors}"
    );
    assert!(errors.contains(&folder.0.display().to_string()), "{errors}");
}
