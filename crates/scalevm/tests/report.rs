//! `scalevm report` as a user meets it. The page's contents are tested where it is made.

mod support;

use serde_json::Value;
use std::fs;
use support::command::{exits, scalevm, success};
use support::scratch::Scratch;

/// Writes a file in `folder` and returns its name there.
fn file(folder: &Scratch, name: &str, content: &str) -> String {
    folder.write(name, content);
    name.to_owned()
}

/// The names of the files in `folder`.
fn names(folder: &Scratch) -> Vec<String> {
    let files = folder.files().into_iter();
    let names = files.map(|file| file.file_name().map(|name| name.to_string_lossy().into()));
    names.map(|name| name.expect("a name")).collect()
}

/// Reports in `folder` to the exit code `code`; stdout and stderr.
fn report(folder: &Scratch, code: i32, arguments: &[&str]) -> (String, String) {
    let mut command = scalevm("report");
    exits(code, command.args(arguments).current_dir(&folder.0))
}

/// Results of real runs.
fn data(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/tests/data");
    format!("{folder}/{name}.jsonl")
}

#[test]
fn the_verdict_is_said_and_the_page_written() {
    let folder = Scratch::folder("report-written");
    let (stdout, stderr) = report(&folder, 0, &[&data("os"), &data("profile")]);
    assert!(
        stdout.starts_with("mmap1 on os, 4 threads: 46 % of task time waits for mmap_lock"),
        "{stdout}"
    );
    assert_eq!(stdout.lines().count(), 1);
    assert!(stderr.contains("report.html"), "{stderr}");
    let page = fs::read_to_string(folder.0.join("report.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert_eq!(names(&folder), ["report.html"], "nothing else is left");
}

#[test]
fn json_says_what_is_in_the_page_and_an_older_page_gives_way() {
    let folder = Scratch::folder("report-json");
    let old = file(&folder, "page.html", "an older page");
    let arguments = [&data("before"), &data("after"), "-o", &old, "--json"];
    let (stdout, stderr) = report(&folder, 0, &arguments);
    let line: Value = serde_json::from_str(&stdout).expect("one line of JSON");
    assert_eq!(
        (&line["kind"], &line["path"]),
        (&"report".into(), &"page.html".into())
    );
    assert_eq!(
        line["sections"],
        serde_json::json!(["verdict", "curves", "comparison", "machine"])
    );
    assert!(
        line["verdict"]
            .as_str()
            .is_some_and(|one| one.starts_with("scalevm, after.jsonl is faster")),
        "{line}"
    );
    let bytes = fs::metadata(folder.0.join(&old)).expect("a page").len();
    assert_eq!((line["bytes"].as_u64(), stderr.as_str()), (Some(bytes), ""));
}

/// A simulated run's lines, under a label.
fn simulated(vm: &str, label: &str) -> String {
    success(&format!(
        "run mmap1 -t 4 --machine freebsd-96 --vm {vm} --seeds 4 --label {label} --json"
    ))
}

#[test]
fn a_store_of_our_own_runs_becomes_a_page() {
    let folder = Scratch::folder("report-store");
    fs::create_dir(folder.0.join("store")).expect("a folder");
    let (old, new) = (simulated("freebsd-di", "v1"), simulated("freebsd-di", "v2"));
    file(&folder, "store/1.jsonl", &old);
    file(&folder, "store/2.jsonl", "");
    file(&folder, "store/3.jsonl", &new);
    file(&folder, "store/notes.txt", "not results");
    let (stdout, _) = report(&folder, 0, &["store", "--json"]);
    let line: Value = serde_json::from_str(&stdout).expect("one line of JSON");
    assert_eq!(
        line["sections"],
        serde_json::json!(["verdict", "curves", "comparison", "machine"])
    );
    let verdict = line["verdict"].as_str().unwrap_or_default();
    // Equal runs; the statistics decide if four seeds are enough to say so.
    assert!(
        verdict.contains("v1") && verdict.contains("v2"),
        "{verdict}"
    );
    assert!(
        !verdict.contains("is faster:") && !verdict.contains("is slower:"),
        "{verdict}"
    );
    let page = fs::read_to_string(folder.0.join("report.html")).expect("a page");
    assert!(
        page.contains("bottleneck: "),
        "what a simulated run says of itself"
    );
}

#[test]
fn the_folder_of_a_profile_is_that_profile() {
    let folder = Scratch::folder("report-profile");
    let profiles = fs::read_to_string(data("profile")).expect("profiles");
    for (name, line) in ["one", "four"].iter().zip(profiles.lines()) {
        fs::create_dir(folder.0.join(name)).expect("a folder");
        file(&folder, &format!("{name}/profile.json"), line);
        file(&folder, &format!("{name}/speedscope.json"), "{}");
    }
    let (stdout, _) = report(&folder, 0, &["one", "four", "--json"]);
    let line: Value = serde_json::from_str(&stdout).expect("one line of JSON");
    let sections = serde_json::json!(["verdict", "locks", "flames", "machine"]);
    assert_eq!(line["sections"], sections);
}

#[test]
fn an_empty_file_among_others_is_a_warning() {
    let folder = Scratch::folder("report-empty");
    let empty = file(&folder, "empty.jsonl", "");
    let (stdout, stderr) = report(&folder, 0, &[&empty, &data("os")]);
    assert!(stdout.starts_with("mmap1 on os peaks at "), "{stdout}");
    let warning = "scalevm: warning: empty.jsonl: contains no results, comparisons, profiles or \
                   reproduced figures; left out\n";
    assert!(stderr.starts_with(warning), "{stderr}");
    let page = fs::read_to_string(folder.0.join("report.html")).expect("a page");
    assert!(page.contains("empty.jsonl: contains no results"));
    let (_, stderr) = report(&folder, 2, &[&empty, &empty]);
    assert!(
        stderr.starts_with("scalevm: empty.jsonl: contains no"),
        "{stderr}"
    );
}

/// What `perf script` printed of a real recording.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../perf/tests/data/script.txt");

#[test]
fn a_recording_of_perf_is_a_profile() {
    let folder = Scratch::folder("report-perf");
    let (_, _) = report(&folder, 0, &[SCRIPT]);
    let page = fs::read_to_string(folder.0.join("report.html")).expect("a page");
    assert!(page.contains("recording of t") && page.contains("mmap_lock"));
    let profile = |words: &[&str]| {
        let mut command = scalevm("profile");
        command.args(words).current_dir(&folder.0);
        command
    };
    let (stdout, stderr) = exits(0, &mut profile(&["--read", SCRIPT, "-o", "out"]));
    for part in ["recording of t, ", "mmap_lock", "bottleneck: "] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(
        stderr.contains("flame graphs and stacks are in out"),
        "{stderr}"
    );
    // The folder is a profile, too, and the same one.
    let (stdout, _) = exits(0, &mut profile(&["--diff", "out", SCRIPT]));
    assert!(!stdout.contains("unlike"), "{stdout}");
    let failing: &[(&[&str], &str)] = &[
        (
            &["--read", SCRIPT, "--threads"],
            "--threads applies only to what is recorded now, not to a file",
        ),
        (&["--read", "none"], "none: No such file"),
        (&["--read", "perf.data"], "perf.data: "),
    ];
    file(&folder, "perf.data", "PERFILE2 and nothing else");
    for (words, message) in failing {
        let (stdout, stderr) = exits(2, &mut profile(words));
        assert!(
            stderr.starts_with(&format!("scalevm: {message}")),
            "{stderr}"
        );
        assert_eq!((&*stdout, stderr.lines().count()), ("", 1), "{stderr}");
    }
    let (_, stderr) = exits(
        2,
        profile(&["--read", "perf.data"]).env("PATH", "/nonexistent"),
    );
    assert!(stderr.contains("apt-get install linux-perf"), "{stderr}");
}

#[test]
fn what_can_not_be_used_is_said_in_one_line() {
    let folder = Scratch::folder("report-errors");
    let good = data("os");
    let numbers = file(&folder, "numbers.txt", "1\n2\n3\n");
    let other = file(&folder, "other.jsonl", "{\"kind\":\"lock\"}\n");
    let broken = file(
        &folder,
        "broken.jsonl",
        "{\"kind\":\"lock\"}\n{\"kind\":\"sample\"}\n",
    );
    fs::create_dir(folder.0.join("empty")).expect("a folder");
    let failing: &[(&[&str], &str)] = &[
        (&["none.jsonl"], "scalevm: none.jsonl: No such file"),
        (&[&good, "none.jsonl"], "scalevm: none.jsonl: No such file"),
        (
            &["empty"],
            "scalevm: empty: contains no results, comparisons, profiles or reproduced figures",
        ),
        (&[&numbers], "scalevm: numbers.txt:1: "),
        (
            &[&other],
            "scalevm: other.jsonl: contains no results, comparisons, profiles or reproduced \
             figures",
        ),
        (&[&broken], "scalevm: broken.jsonl:2: missing field"),
        (
            &[&good, "-o", "no/such/page.html"],
            "scalevm: no/such/page.html: No such file",
        ),
        (&[&good, "-o", "empty"], "scalevm: empty: "),
    ];
    for (arguments, message) in failing {
        let (stdout, stderr) = report(&folder, 2, arguments);
        assert!(stderr.starts_with(message), "{arguments:?}: {stderr}");
        assert_eq!(
            (stdout.as_str(), stderr.lines().count()),
            ("", 1),
            "{arguments:?}"
        );
    }
    let (_, stderr) = report(&folder, 2, &[]);
    assert!(stderr.contains("<FILES>"), "{stderr}");
    let left = names(&folder);
    assert_eq!(
        left,
        ["broken.jsonl", "empty", "numbers.txt", "other.jsonl"],
        "no half page"
    );
}
