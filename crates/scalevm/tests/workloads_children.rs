//! Workloads leave neither children nor files behind.

mod support;

use std::sync::{Mutex, PoisonError};
use support::command::{json, number};
use support::sample::{run, sample};
use support::scratch::Scratch;

const WORKLOADS: [&str; 18] = [
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
    "smaps1",
    "unix1",
];

/// One test at a time: they look at all children of this process.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns true if children that lost their parent have become this process's.
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
