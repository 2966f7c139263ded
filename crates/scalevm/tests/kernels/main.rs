//! Profiles on kernels as distributions pack them, in guests of QEMU: on each, locks have the right
//! names, and a profile says what the kernel lacks.
//!
//! `SCALEVM_KERNELS` names the releases whose kernels are tested, and `crates/guests/linux.sh`
//! fetches them. A number before the release is that of a load's threads, 2 without: `8/trixie`.
//! `SCALEVM_PROGRAM` is the file of another program than the one built with this test, such as the
//! static one of `./dist`.

mod guest;
#[path = "../support/mod.rs"]
mod support;

use guests::Machine;
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
    /// True if time is counted in instructions, so that what is measured does not depend on how
    /// busy this computer is. Kernels before 6.5 spin until a CPU has started, which then gets no
    /// instructions.
    counted: bool,
}

const KERNELS: [Kernel; 7] = [
    kernel("focal", [false; 3]),                // 5.4
    kernel("bullseye", [false; 3]),             // 5.10
    kernel("jammy", [false, true, false]),      // 5.15
    kernel("bookworm", [true, true, false]),    // 6.1
    kernel("bookworm-rt", [true, true, false]), // 6.1, real-time
    kernel("trixie", [true; 3]),                // 6.12
    kernel("sid", [true; 3]),                   // the newest
];

const fn kernel(
    release: &'static str,
    [sees_contention, sees_holds, counted]: [bool; 3],
) -> Kernel {
    Kernel {
        release,
        sees_contention,
        sees_holds,
        counted,
    }
}

#[test]
fn profiles_are_right_on_kernels_of_distributions() {
    let chosen = env::var("SCALEVM_KERNELS").unwrap_or(USUAL.into());
    for choice in chosen.split_whitespace() {
        let (threads, release) = choice.split_once('/').unwrap_or(("2", choice));
        let kernel = KERNELS.iter().find(|kernel| kernel.release == release);
        let kernel = kernel.unwrap_or_else(|| panic!("SCALEVM_KERNELS: no {release}"));
        check(
            kernel,
            threads
                .parse()
                .expect("SCALEVM_KERNELS: a number of threads"),
        );
    }
}

fn check(kernel: &Kernel, threads: u32) {
    // A busy computer merges the ticks of an emulated clock.
    let frequency = if kernel.counted { 997 } else { 97 };
    let watch = |load: &str| {
        format!(
            "load {load} {threads} & pid=$!; sleep 0.2
             scalevm profile --pid $pid --duration 1 --frequency {frequency} --json 2>/errors ||
                cat /errors"
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
    let machine = Machine {
        // The recorder, which may take half a CPU there, has its own: no thread waits for a CPU
        // because it is watched.
        cpus: threads + 1,
        memory: 1 << 30,
        counted: kernel.counted,
        ..Machine::default()
    };
    let printed = guest::printed(kernel.release, &machine, &scripts);
    let [doctor, maps, protects, forks, locks] = &printed[..] else {
        panic!("{}: {printed:#?}", kernel.release);
    };
    kernel.assert_doctor(doctor);
    for profile in &printed[1..] {
        kernel.assert_notes(profile);
    }
    let (maps_in, changes_in) = (["__vm_munmap", "vm_mmap_pgoff"], ["do_mprotect_pkey"]);
    let waits_in = ["lock_mm_and_find_vma", "do_user_addr_fault", "do_madvise"];
    let forks_in = ["dup_mmap", "copy_process"];
    kernel.assert_lock(maps, "mmap_lock", &maps_in, &maps_in);
    kernel.assert_lock(protects, "mmap_lock", &changes_in, &changes_in);
    kernel.assert_lock(forks, "mmap_lock", &waits_in, &forks_in);
    kernel.assert_lock(
        locks,
        "pthread_mutex the_lock",
        &["critical"],
        &["critical"],
    );
    for (profile, lock) in [
        (maps, "waits for mmap_lock, taken for writing in "),
        (
            protects,
            "waits for mmap_lock, taken for writing in do_mprotect_pkey",
        ),
        (locks, "waits for pthread_mutex the_lock, taken in critical"),
    ] {
        // How much of a busy computer's time is a wait for a lock is chance.
        let is_right = text(profile, "bottleneck").contains(lock);
        assert!(is_right || !kernel.counted, "{}", kernel.found(profile));
    }
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

    /// Asserts that one of `callers` waits for the lock and one of `holders` holds it, and that all
    /// locks that matter have names. Where time is counted the lock is the costliest.
    fn assert_lock(&self, profile: &Value, name: &str, callers: &[&str], holders: &[&str]) {
        let rows = profile["locks"].as_array().expect("locks");
        let found = || self.found(profile);
        let is_of = |row: &&Value| {
            let caller = text(row, "caller");
            row["name"] == name && callers.iter().any(|one| caller.starts_with(one))
        };
        let row = rows.iter().find(is_of);
        let row = row.unwrap_or_else(|| panic!("{}", found()));
        let cost = |row: &Value| number(&row["wait"]) + number(&row["spin"]);
        assert!(cost(row) > 0.001, "{}", found());
        // Tracing of `mmap_lock` acquires it to name the control group.
        let is_own = |row: &&Value| row["name"] != "kernfs_rename_lock";
        let costliest = rows.iter().find(is_own).expect("a row");
        assert!(costliest["name"] == name || !self.counted, "{}", found());
        let is_unknown = |row: &&Value| row["name"] == "unknown lock";
        let unknown: f64 = rows.iter().filter(is_unknown).map(cost).sum();
        assert!(unknown < 0.01 * number(&profile["lived"]), "{}", found());
        let mut rows = profile["holders"].as_array().expect("holders").iter();
        let holds =
            |row: &Value| row["lock"] == name && holders.iter().any(|one| row["function"] == *one);
        assert!(rows.any(holds), "{}", found());
    }

    /// What a profile says of locks, in few words.
    fn found(&self, profile: &Value) -> String {
        let fields = [
            "name", "lock", "kind", "caller", "function", "wait", "spin", "waited",
        ];
        let row = |row: &Value| fields.map(|field| row[field].to_string()).join(" ");
        let rows = ["locks", "holders"]
            .iter()
            .flat_map(|kind| profile[*kind].as_array());
        let rows: Vec<String> = rows.flatten().map(row).collect();
        let (rows, sentence) = (rows.join("\n"), text(profile, "bottleneck"));
        format!(
            "{}:\n{rows}\n{sentence}\n{}",
            self.release, profile["notes"]
        )
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().expect("text")
}
