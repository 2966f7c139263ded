//! Profiles name the bottleneck, on every kind of system.

mod command;
mod holders;
#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;
use std::process::Command;
use support::command::{failure, json, text};
use support::place::Place;
use support::sees_locks;

/// Waits in the kernel for a lock of its own.
const BLOCKS: &str = r#"
#include <pthread.h>
#include <unistd.h>

char *testcase_description = "A mutex that is held while its holder sleeps";

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void planted_contention(void)
{
    pthread_mutex_lock(&mutex);
    usleep(200);
    pthread_mutex_unlock(&mutex);
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    for (;;) {
        planted_contention();
        (*iterations)++;
    }
}
"#;

/// Spins for a lock of its own.
const SPINS: &str = r#"
char *testcase_description = "A lock whose waiters spin";

static volatile int locked;

__attribute__((noinline)) void planted_spinning(void)
{
    while (__sync_lock_test_and_set(&locked, 1))
        while (locked)
            ;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    for (;;) {
        planted_spinning();
        for (volatile int work = 0; work < 100; work++)
            ;
        __sync_lock_release(&locked);
        (*iterations)++;
    }
}
"#;

const QUICK: &str = "--samples 2 --duration 0.4 --warmup 0";

/// Returns true if there are stacks at all, as there are not where a container forbids it.
fn sees_stacks() -> bool {
    let sees = perf::support::samples();
    if !sees {
        eprintln!("skipped: nothing can be sampled here");
    }
    sees
}

/// The one line of JSON of a profile.
fn profile(place: &Place, arguments: &str) -> Value {
    let stdout = place.success(&format!("profile {arguments} --json"), &[]);
    let value: Value = serde_json::from_str(&stdout).expect("one line of JSON");
    assert_eq!(value["kind"], "profile");
    value
}

/// Seconds of stacks that contain all of `frames`.
fn seconds(stacks: &Value, frames: &[&str]) -> f64 {
    let stacks = stacks.as_object().expect("stacks").iter();
    let right = stacks.filter(|(stack, _)| frames.iter().all(|frame| stack.contains(frame)));
    right
        .map(|(_, seconds)| seconds.as_f64().expect("a number"))
        .sum()
}

/// Seconds of rows with this lock and caller.
fn lost(profile: &Value, name: &str, kind: &str, caller: &str) -> f64 {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = profile["locks"].as_array().expect("locks").iter();
    let right = rows.filter(|row| {
        text(&row["name"]).contains(name)
            && row["kind"] == kind
            && text(&row["caller"]).contains(caller)
    });
    let time = |row: &Value| row["wait"].as_f64().zip(row["spin"].as_f64());
    right.filter_map(time).map(|(wait, spin)| wait + spin).sum()
}

#[test]
fn the_writers_of_the_mmap_lock_are_named() {
    let place = Place::new("mmap-lock");
    if !sees_stacks() {
        return;
    }
    let run = format!("mmap1 -t 4 --threads --on os {QUICK}");
    let profile = profile(&place, &run);
    let note = profile["notes"].to_string();
    if !sees_locks() {
        assert!(note.contains("tracepoints"), "{note}");
        return;
    }
    let task_seconds = 4.0 * profile["seconds"].as_f64().expect("a number");
    for caller in ["munmap", "mmap"] {
        let lost = lost(&profile, "mmap_lock", "rwsem write", caller);
        assert!(lost > 0.01 * task_seconds, "{caller}: {}", profile["locks"]);
    }
    let bottleneck = profile["bottleneck"].as_str().expect("a sentence");
    assert!(
        bottleneck.contains("task time waits for mmap_lock, taken for writing in "),
        "{bottleneck}"
    );
    // Seen from both sides: the workload's loop, and the kernel below it.
    assert!(
        seconds(&profile["busy"], &["mmap1.", "_[k]"]) > 0.0
            || seconds(&profile["busy"], &["_[k]"]) > 0.0
    );
    assert!(seconds(&profile["waits"], &["rwsem_down_write_slowpath_[k]"]) > 0.0);
    assert!(profile["rate_unwatched"].as_f64() > Some(0.0), "{note}");
    assert!(profile["machine"]["kernel"].is_string());
}

#[test]
fn a_lock_of_the_program_itself_is_found() {
    let place = Place::new("planted");
    let blocks = place.source("blocks.c", BLOCKS);
    let spins = place.source("spins.c", SPINS);
    let profile_of = |file: &str| profile(&place, &format!("{file} -t 4 --threads {QUICK}"));
    if !sees_stacks() {
        return;
    }
    if sees_locks() {
        let profile = profile_of(&blocks);
        let futex = lost(&profile, "", "futex", "planted_contention");
        let task_seconds = 4.0 * profile["seconds"].as_f64().expect("a number");
        assert!(futex > 0.3 * task_seconds, "{}", profile["locks"]);
        let bottleneck = profile["bottleneck"].as_str().expect("a sentence");
        assert!(bottleneck.contains("planted_contention"), "{bottleneck}");
    }
    // Spinning is visible without rights.
    let profile = profile_of(&spins);
    let all = seconds(&profile["busy"], &[]);
    let spinning = seconds(&profile["busy"], &[";planted_spinning"]);
    assert!(spinning > 0.2 * all, "{spinning} of {all}");
    let bottleneck = profile["bottleneck"].as_str().expect("a sentence");
    assert!(bottleneck.contains("planted_spinning"), "{bottleneck}");
}

#[test]
fn all_files_are_written_and_two_profiles_compared() {
    let place = Place::new("files");
    let run = |vm: &str, out: &str| {
        let out = place.file(out);
        let run = format!("profile mmap1 -t 32 --vm {vm} --on sim --duration 0.008 --out {out}");
        (place.success(&run, &[]), out)
    };
    let (before, a) = run("freebsd-di", "before");
    let (_, b) = run("scalevm", "after");
    for part in ["invl gen", "Di.mutex", "of task time", "bottleneck: "] {
        assert!(before.contains(part), "{part}: {before}");
    }
    let file = |name: &str| std::fs::read_to_string(format!("{a}/{name}")).expect(name);
    assert!(file("busy.svg").contains("baselines::freebsd::di::begin"));
    assert!(file("waits.svg").contains("[spins]"));
    assert!(file("busy.folded").contains("\nmmap1;workloads::run;workloads::mmap1::run;"));
    assert!(file("waits.folded").contains("workloads::mmap1::run"));
    let scope: Value = serde_json::from_str(&file("speedscope.json")).expect("JSON");
    assert_eq!(scope["exporter"], "scalevm");
    let firefox: Value = serde_json::from_str(&file("firefox.json")).expect("JSON");
    assert_eq!(firefox["threads"][1]["name"], "waiting");
    let zipped = std::fs::read(format!("{a}/profile.pb.gz")).expect("the file");
    assert!(zipped.starts_with(b"\x1f\x8b"), "gzip");

    let out = place.file("diff");
    let text = place.success(
        &format!("profile --diff {a} {b}/profile.jsonl -o {out}"),
        &[],
    );
    assert!(
        text.contains("less waiting for ") && text.contains("Di.mutex"),
        "{text}"
    );
    let svg = std::fs::read_to_string(format!("{out}/busy-diff-before.svg")).expect("the picture");
    assert!(svg.contains("baselines::freebsd::di::begin") && svg.contains("blue: less"));
    for name in ["busy-diff.svg", "waits-diff.svg", "waits-diff-before.svg"] {
        assert!(
            std::fs::exists(format!("{out}/{name}")).expect("the folder"),
            "{name}"
        );
    }
    let json = place.success(&format!("profile --diff {a} {b} --json"), &[]);
    let value: Value = serde_json::from_str(&json).expect("one line of JSON");
    assert_eq!(
        (&value["kind"], &value["before"]["vm"]),
        (&"difference".into(), &"freebsd-di".into())
    );
    let first = &value["locks"][0];
    assert!(
        first["before"].as_f64() > first["after"].as_f64(),
        "{first}"
    );
}

#[test]
fn the_same_simulated_run_gives_the_same_profile() {
    let place = Place::new("same");
    let run = "mmap1 -t 8 --vm freebsd-epoch --on sim --duration 0.002 --seed 7";
    let profile = profile(&place, run);
    assert_eq!(profile, self::profile(&place, run));
    let all = 8.0 * profile["seconds"].as_f64().expect("a number");
    let seen = seconds(&profile["busy"], &[]) + seconds(&profile["waits"], &["[blocked]"]);
    assert!(
        (0.95 * all..=1.001 * all).contains(&seen),
        "{seen} of {all}"
    );
}

#[test]
fn our_own_locks_are_named_on_threads() {
    let place = Place::new("hosted");
    let run = format!("mmap1 -t 2 --vm freebsd-di --on hosted {QUICK}");
    let profile = profile(&place, &run);
    let row = &profile["locks"]
        .as_array()
        .expect("locks")
        .iter()
        .find(|row| row["kind"] == "lock");
    let row = row.expect("a lock that was waited for");
    assert!(
        row["caller"].as_str().expect("a place").contains(".rs:"),
        "{row}"
    );
    assert!(
        row["acquisitions"].as_u64() >= row["contentions"].as_u64(),
        "{row}"
    );
    let waits = seconds(&profile["waits"], &[]);
    assert!(waits > 0.0, "{profile}");
    assert!(!sees_stacks() || seconds(&profile["busy"], &["scalevm"]) > 0.0);
}

#[test]
fn without_rights_what_is_missing_is_said() {
    if !sees_locks() {
        return; // the other tests run so then
    }
    let nobody = [
        "--reuid=65534",
        "--clear-groups",
        env!("CARGO_BIN_EXE_scalevm"),
    ];
    let mut command = Command::new("setpriv");
    command
        .args(nobody)
        .args("profile mmap1 --json".split(' '))
        .args(QUICK.split(' '));
    // The user nobody may not enter the directories of this program in some places.
    command.current_dir("/");
    let output = command.output().expect("setpriv starts");
    let errors = text(&output.stderr);
    if errors.contains("Permission denied") && output.status.code() != Some(0) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(
        errors.contains("tracepoints need root or CAP_PERFMON; run as root, or"),
        "{errors}"
    );
    let profile: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert!(seconds(&profile["busy"], &[]) > 0.0, "user stacks are seen");
}

#[test]
fn bad_profiles_are_named() {
    let place = Place::new("bad");
    let results = place.source("results.jsonl", "{\"kind\":\"sample\"}\n");
    let damaged = place.source("damaged.json", "{\"kind\":\"profile\",\n");
    let cases = [
        (
            format!("{results} {results}"),
            format!("scalevm: {results}: no profile"),
        ),
        (
            format!("{damaged} {results}"),
            format!("scalevm: {damaged}:1: "),
        ),
        (
            "/nowhere /nowhere".to_owned(),
            "scalevm: /nowhere: No such file".to_owned(),
        ),
    ];
    for (files, why) in cases {
        let errors = place.failure(&format!("profile --diff {files}"), &[], 2);
        assert!(
            errors.starts_with(&why) && errors.lines().count() == 1,
            "{errors}"
        );
    }
    let errors = place.failure("profile", &[], 2);
    assert!(errors.contains("--diff <BEFORE> <AFTER>"), "{errors}");
}

#[test]
fn what_a_simulated_profile_has_no_use_for_is_refused() {
    for option in [
        "--seeds 2",
        "--samples 2",
        "--warmup 1",
        "--frequency 99",
        "--ring 64",
    ] {
        let line = format!("profile mmap1 --machine arm64-16 --duration 0.001 {option}");
        let errors = failure(&line, 2);
        let (name, _) = option.split_once(' ').expect("a value");
        let expected = format!("scalevm: {name}");
        assert!(
            errors.starts_with(&expected) && errors.lines().count() == 1,
            "{errors}"
        );
    }
}

#[test]
fn a_sweep_says_why_its_curve_bends() {
    let place = Place::new("why");
    let sweep = "sweep mmap1 --on sim --vm freebsd-di --cpus 1,8,48 -s 1 --duration 0.003 --why";
    let stdout = place.success(sweep, &[]);
    let places = [
        "freebsd-di, 8 processes: bottleneck: ",
        "freebsd-di, 48 processes: bottleneck: ",
    ];
    for part in places
        .into_iter()
        .chain(["freebsd-di, from 8 to 48 processes:", "times the rate"])
    {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let json = place.success(&format!("{sweep} --json"), &[]);
    let lines = self::json(&json);
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["kind"]).collect();
    assert_eq!(
        kinds[kinds.len() - 3..],
        ["profile", "profile", "difference"]
    );
}

/// The output of the command run by a user who may not watch the kernel; none if this user is not
/// root.
fn without_rights(arguments: &str) -> Option<std::process::Output> {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    // SAFETY: no arguments in memory.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become nobody");
        return None;
    }
    // A place where the user nobody can read and run it.
    let name = format!("scalevm-test-{}", std::process::id());
    let program = std::env::temp_dir().join(name);
    std::fs::copy(env!("CARGO_BIN_EXE_scalevm"), &program).expect("a copy");
    let mut command = Command::new(&program);
    command.args(arguments.split_whitespace()).current_dir("/");
    let output = command.uid(NOBODY).gid(NOBODY).output();
    std::fs::remove_file(&program).expect("removed");
    let output = output.expect("starts");
    if text(&output.stderr).contains("nothing can be sampled") {
        eprintln!("skipped: nothing can be sampled here");
        return None;
    }
    Some(output)
}

#[test]
fn what_can_not_be_seen_is_not_known() {
    let Ok(level) = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") else {
        return;
    };
    if level.trim().parse().unwrap_or(2) < 2 {
        eprintln!("skipped: everybody may see the kernel here");
        return;
    }
    let profile = "profile mmap1 -t 2 --threads --json --samples 1 --duration 0.2 --warmup 0";
    let Some(output) = without_rights(profile) else {
        return;
    };
    let profile = &json(&text(&output.stdout))[0];
    assert_eq!(
        profile["hidden"],
        serde_json::json!({ "kernel": true, "waits": true })
    );
    let sentence = profile["bottleneck"].as_str().expect("a sentence");
    assert!(sentence.starts_with("not known"), "{sentence}");
    let sweep = "sweep mmap1 --cpus 1,2 --threads --why --samples 1 --duration 0.2 --warmup 0";
    let Some(output) = without_rights(sweep) else {
        return;
    };
    let printed = text(&output.stdout);
    let said: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("bottleneck:"))
        .collect();
    assert!(!said.is_empty(), "{printed}");
    assert!(
        said.iter()
            .all(|line| line.contains("bottleneck: not known")),
        "{printed}"
    );
}

#[test]
fn a_command_is_profiled_without_what_starts_it() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("driven");
    let mut command = place.command(&format!("profile {QUICK} -t 2 --json --command true"));
    let output = command.output().expect("starts");
    let stdout = text(&output.stdout);
    let profile = &json(&stdout)[0];
    let sum = |kind: &str| -> f64 {
        let stacks = profile[kind].as_object().expect("stacks");
        stacks
            .values()
            .map(|seconds| seconds.as_f64().expect("a number"))
            .sum()
    };
    let lived = profile["lived"].as_f64().expect("a number");
    let (busy, waits) = (sum("busy"), sum("waits"));
    assert!(
        busy > 0.0 && busy <= lived && waits <= lived,
        "{busy} and {waits} of {lived}"
    );
    // `true` does not wait; its parent does.
    let waited = profile["waits"].as_object().expect("stacks");
    assert!(
        !waited.keys().any(|stack| stack.contains("do_wait")),
        "{stdout}"
    );
    let sentence = profile["bottleneck"].as_str().expect("a sentence");
    assert!(
        !sentence.contains("wait4") && !sentence.contains("do_wait"),
        "{sentence}"
    );
}
