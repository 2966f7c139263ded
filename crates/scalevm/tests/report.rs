//! `scalevm report` as a user meets it. What the page shows is tested where it is made.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The crate's results, and a folder of a test's own, gone when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // What is there is of a test that was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        fs::write(self.0.join(name), content).expect("a file");
        name.to_owned()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
        names.sort();
        names
    }

    /// Runs in the folder to the exit code `code`; stdout and stderr.
    fn run(&self, code: i32, arguments: &[&str]) -> (String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scalevm"));
        let command = command.arg("report").args(arguments).current_dir(&self.0);
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("the command starts");
        let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
        assert_eq!(
            status.code(),
            Some(code),
            "{arguments:?}:\n{stdout}\n{stderr}"
        );
        (stdout, stderr)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover folder among the tests' files harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Results of real runs.
fn data(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/tests/data");
    format!("{folder}/{name}.jsonl")
}

#[test]
fn the_verdict_is_said_and_the_page_written() {
    let folder = Folder::new("report-written");
    let (stdout, stderr) = folder.run(0, &[&data("os"), &data("profile")]);
    assert!(
        stdout.starts_with("mmap1 on os, 4 threads: 46 % of task time waits for mmap_lock"),
        "{stdout}"
    );
    assert_eq!(stdout.lines().count(), 1);
    assert!(stderr.contains("report.html"), "{stderr}");
    let page = fs::read_to_string(folder.0.join("report.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert_eq!(folder.files(), ["report.html"], "nothing is left beside it");
}

#[test]
fn json_says_what_is_in_the_page_and_an_older_page_gives_way() {
    let folder = Folder::new("report-json");
    let old = folder.file("page.html", "an older page");
    let arguments = [&data("before"), &data("after"), "-o", &old, "--json"];
    let (stdout, stderr) = folder.run(0, &arguments);
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
    let arguments = [
        "run",
        "mmap1",
        "-t",
        "4",
        "--machine",
        "freebsd-96",
        "--vm",
        vm,
        "--seeds",
        "4",
        "--label",
        label,
        "--json",
    ];
    let run = Command::new(env!("CARGO_BIN_EXE_scalevm"))
        .args(arguments)
        .output();
    String::from_utf8(run.expect("the command starts").stdout).expect("UTF-8")
}

#[test]
fn a_store_of_our_own_runs_becomes_a_page() {
    let folder = Folder::new("report-store");
    fs::create_dir(folder.0.join("store")).expect("a folder");
    let (old, new) = (simulated("freebsd-di", "v1"), simulated("freebsd-di", "v2"));
    folder.file("store/1.jsonl", &old);
    folder.file("store/2.jsonl", "");
    folder.file("store/3.jsonl", &new);
    folder.file("store/notes.txt", "not results");
    let (stdout, _) = folder.run(0, &["store", "--json"]);
    let line: Value = serde_json::from_str(&stdout).expect("one line of JSON");
    assert_eq!(
        line["sections"],
        serde_json::json!(["verdict", "curves", "comparison", "machine"])
    );
    let verdict = line["verdict"].as_str().unwrap_or_default();
    // Equal runs; whether four seeds are enough to say so is the statistics' affair.
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
    let folder = Folder::new("report-profile");
    let profiles = fs::read_to_string(data("profile")).expect("profiles");
    for (name, line) in ["one", "four"].iter().zip(profiles.lines()) {
        fs::create_dir(folder.0.join(name)).expect("a folder");
        folder.file(&format!("{name}/profile.json"), line);
        folder.file(&format!("{name}/speedscope.json"), "{}");
    }
    let (stdout, _) = folder.run(0, &["one", "four", "--json"]);
    let line: Value = serde_json::from_str(&stdout).expect("one line of JSON");
    let sections = serde_json::json!(["verdict", "locks", "flames", "machine"]);
    assert_eq!(line["sections"], sections);
}

#[test]
fn what_can_not_be_used_is_said_in_one_line() {
    let folder = Folder::new("report-errors");
    let good = data("os");
    let numbers = folder.file("numbers.txt", "1\n2\n3\n");
    let other = folder.file("other.jsonl", "{\"kind\":\"lock\"}\n");
    let broken = folder.file(
        "broken.jsonl",
        "{\"kind\":\"lock\"}\n{\"kind\":\"sample\"}\n",
    );
    fs::create_dir(folder.0.join("empty")).expect("a folder");
    let failing: &[(&[&str], &str)] = &[
        (&["none.jsonl"], "scalevm: none.jsonl: No such file"),
        (&[&good, "none.jsonl"], "scalevm: none.jsonl: No such file"),
        (
            &["empty"],
            "scalevm: empty: no results, comparisons or profiles in it",
        ),
        (&[&numbers], "scalevm: numbers.txt:1: "),
        (
            &[&other],
            "scalevm: other.jsonl: no results, comparisons or profiles in it",
        ),
        (&[&broken], "scalevm: broken.jsonl:2: missing field"),
        (
            &[&good, "-o", "no/such/page.html"],
            "scalevm: no/such/page.html: No such file",
        ),
        (&[&good, "-o", "empty"], "scalevm: empty: "),
    ];
    for (arguments, message) in failing {
        let (stdout, stderr) = folder.run(2, arguments);
        assert!(stderr.starts_with(message), "{arguments:?}: {stderr}");
        assert_eq!(
            (stdout.as_str(), stderr.lines().count()),
            ("", 1),
            "{arguments:?}"
        );
    }
    let (_, stderr) = folder.run(2, &[]);
    assert!(stderr.contains("<FILES>"), "{stderr}");
    let left = folder.files();
    assert_eq!(
        left,
        ["broken.jsonl", "empty", "numbers.txt", "other.jsonl"],
        "no half page"
    );
}
