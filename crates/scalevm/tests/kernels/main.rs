//! Profiles on kernels as distributions pack them, in guests of QEMU: on each, locks have the right
//! names, and a profile says what the kernel lacks.
//!
//! `SCALEVM_KERNELS` names the releases whose kernels are tested, and `crates/guests/linux.sh`
//! fetches them. A release behind a slash has another number of CPUs than 2: `8/trixie`.

mod guest;
#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;
use std::env;
use support::command::number;

/// The kernel that is tested without another choice.
const USUAL: &str = "trixie";

/// What a kernel can report.
struct Kernel {
    release: &'static str,
    /// When waits for its locks begin and end.
    sees_contention: bool,
    /// When `mmap_lock` is acquired and released.
    sees_holds: bool,
}

const fn kernel(release: &'static str, sees_contention: bool, sees_holds: bool) -> Kernel {
    Kernel {
        release,
        sees_contention,
        sees_holds,
    }
}

const KERNELS: [Kernel; 7] = [
    kernel("focal", false, false),     // 5.4
    kernel("bullseye", false, false),  // 5.10
    kernel("jammy", false, true),      // 5.15
    kernel("bookworm", true, true),    // 6.1
    kernel("bookworm-rt", true, true), // 6.1
    kernel("trixie", true, true),      // 6.12
    kernel("sid", true, true),         // the newest
];

#[test]
fn profiles_are_right_on_kernels_of_distributions() {
    let chosen = env::var("SCALEVM_KERNELS").unwrap_or(USUAL.into());
    for choice in chosen.split_whitespace() {
        let (cpus, release) = choice.split_once('/').unwrap_or(("2", choice));
        let kernel = KERNELS.iter().find(|kernel| kernel.release == release);
        let kernel = kernel.unwrap_or_else(|| panic!("SCALEVM_KERNELS: no {release}"));
        check(
            kernel,
            cpus.parse().expect("SCALEVM_KERNELS: a number of CPUs"),
        );
    }
}

fn check(kernel: &Kernel, cpus: u32) {
    let watch = |load: &str| {
        format!(
            "load {load} {cpus} & pid=$!; sleep 0.2
             scalevm profile --pid $pid --duration 1 --json 2>/errors || cat /errors"
        )
    };
    let doctor = "scalevm doctor --json | grep tracepoints".to_owned();
    let scripts = [
        doctor,
        watch("maps"),
        watch("protects"),
        watch("forks"),
        watch("locks"),
    ];
    let printed = guest::printed(kernel.release, cpus, &scripts);
    let [doctor, maps, protects, forks, locks] = &printed[..] else {
        panic!("{}: {printed:#?}", kernel.release);
    };
    kernel.assert_doctor(doctor);
    for profile in &printed[1..] {
        kernel.assert_notes(profile);
    }
    for (load, callers) in [
        (maps, &["__vm_munmap", "vm_mmap_pgoff"][..]),
        (protects, &["do_mprotect_pkey"][..]),
        (forks, &["dup_mmap", "copy_process"][..]),
    ] {
        kernel.assert_lock(load, "mmap_lock", callers);
    }
    kernel.assert_lock(locks, "pthread_mutex the_lock", &["critical"]);
    let sentence = text(locks, "bottleneck");
    let lock = "waits for pthread_mutex the_lock, taken in critical";
    assert!(sentence.contains(lock), "{}: {sentence}", kernel.release);
}

impl Kernel {
    fn assert_doctor(&self, finding: &Value) {
        let expected = if self.sees_contention {
            "can be opened"
        } else {
            "are seen where threads go off CPU"
        };
        assert!(
            text(finding, "found").contains(expected),
            "{}: {finding}",
            self.release
        );
        let state = if self.sees_contention { "ok" } else { "advice" };
        assert_eq!(finding["state"], state, "{}: {finding}", self.release);
    }

    /// Asserts that a profile says what this kernel lacks, and no more.
    fn assert_notes(&self, profile: &Value) {
        let notes = profile["notes"].to_string();
        for (sees, lacks) in [
            (self.sees_contention, "lacks the tracepoints of 5.19"),
            (self.sees_holds, "lacks the tracepoints of 5.11"),
            (true, "root"),
        ] {
            assert_eq!(notes.contains(lacks), !sees, "{}: {notes}", self.release);
        }
    }

    /// Asserts that the lock is a bottleneck, acquired and held by one of `functions`, and that all
    /// locks that matter have names.
    fn assert_lock(&self, profile: &Value, name: &str, functions: &[&str]) {
        let rows = profile["locks"].as_array().expect("locks");
        let found = || {
            format!(
                "{}: {rows:#?}, {}",
                self.release,
                text(profile, "bottleneck")
            )
        };
        let is_of = |row: &&Value| {
            let caller = text(row, "caller");
            row["name"] == name && functions.iter().any(|one| caller.starts_with(one))
        };
        let row = rows
            .iter()
            .find(is_of)
            .unwrap_or_else(|| panic!("{}", found()));
        let cost = |row: &Value| number(&row["wait"]) + number(&row["spin"]);
        assert!(cost(row) > 0.01, "{}", found());
        let is_unknown = |row: &&Value| row["name"] == "unknown lock";
        let unknown: f64 = rows.iter().filter(is_unknown).map(cost).sum();
        assert!(unknown < 0.01 * number(&profile["lived"]), "{}", found());
        assert!(text(profile, "bottleneck").contains(name), "{}", found());
        let holders = profile["holders"].as_array().expect("holders");
        let holds = |row: &Value| {
            row["lock"] == name && functions.iter().any(|one| row["function"] == *one)
        };
        assert!(holders.iter().any(holds), "{}: {holders:#?}", self.release);
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().expect("text")
}
