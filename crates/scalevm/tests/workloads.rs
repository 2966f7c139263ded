//! Workloads beyond memory, as a user runs them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

const WORKLOADS: [&str; 10] = [
    "context_switch1",
    "exec1",
    "fork1",
    "futex1",
    "lock1",
    "open1",
    "pipe1",
    "poll1",
    "signal1",
    "unix1",
];

/// One test at a time: they look at all children of this process.
static ALONE: Mutex<()> = Mutex::new(());

/// A folder for temporary files, which must be empty in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("scalevm-workloads-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a folder");
        Folder(folder)
    }

    fn scalevm(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scalevm"));
        command.env("TMPDIR", &self.0);
        command.args(arguments.split_whitespace());
        command.output().expect("the command starts")
    }

    fn assert_empty(&self, after: &str) {
        let names = fs::read_dir(&self.0).expect("a folder");
        let names: Vec<_> = names.flatten().map(|entry| entry.file_name()).collect();
        assert!(names.is_empty(), "{after} left {names:?}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether children that lost their parent have become this process's.
fn orphans() -> bool {
    // SAFETY: only one test runs, and it has waited for what it has started itself.
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) != -1 }
}

#[test]
fn each_runs_in_both_modes_and_leaves_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: changes only whose children orphans become.
    let adopted = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    assert_eq!(adopted, 0);
    let folder = Folder::new("modes");
    for workload in WORKLOADS {
        for mode in ["processes", "threads"] {
            let run =
                format!("run {workload} -t 2 -s 1 --warmup 0 --duration 0.05 --json --{mode}");
            let output = folder.scalevm(&run);
            assert_eq!(output.status.code(), Some(0), "{run}: {}", errors(&output));
            let lines = String::from_utf8(output.stdout).expect("UTF-8");
            let sample = lines.lines().next().expect("a sample");
            let sample: serde_json::Value = serde_json::from_str(sample).expect("JSON");
            assert_eq!(sample["workload"], workload);
            assert_eq!(sample["mode"], mode);
            assert!(
                sample["total"].as_f64().is_some_and(|rate| rate > 0.0),
                "{sample}"
            );
            folder.assert_empty(&run);
            assert!(!orphans(), "{run} left a child");
        }
    }
}

#[test]
fn our_own_vm_says_what_it_lacks() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("lacking");
    for (workload, lacking) in [
        ("futex1", "futexes"),
        ("open1", "files with names"),
        ("fork1", "fork"),
        ("context_switch1", "pipes"),
    ] {
        for on in ["--on hosted", "--topology 1x2x1"] {
            let output = folder.scalevm(&format!("run {workload} {on}"));
            let expected = format!(
                "scalevm: {workload} needs {lacking}, which scalevm's own VM does not have; \
                 use --on os\n"
            );
            assert_eq!((output.status.code(), errors(&output)), (Some(2), expected));
        }
    }
}

#[test]
fn what_can_not_be_prepared_is_told() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("gone");
    fs::remove_dir(&folder.0).expect("empty");
    let output = folder.scalevm("run open1 -s 1 --warmup 0 --duration 0.05");
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(
        errors.contains("open1: task 0: temporary file: "),
        "{errors}"
    );
    assert!(errors.contains(&folder.0.display().to_string()), "{errors}");
}
