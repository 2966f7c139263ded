//! The fate of results where they are written: standard output that is full or closed, files that
//! are no files, names that are taken, and output that is cut short.

mod support;

use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use support::command::{exits, failure, json, scalevm, success, text};
use support::place::Place;
use support::scratch::Scratch;

/// A run that is soon over.
const SHORT: &str = "run brk1 -s 2 --duration 0.02 --warmup 0 --on os";

fn full() -> File {
    let full = OpenOptions::new().write(true).open("/dev/full");
    full.expect("a device that is always full")
}

/// Results of real runs.
fn data(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/tests/data");
    format!("{folder}/{name}.jsonl")
}

#[test]
fn a_full_standard_output_is_one_line_and_no_panic() {
    let folder = Scratch::folder("outputs-full");
    let report = format!("report {} -o page.html", data("os"));
    let compare = format!("compare {0} {0}", data("os"));
    for arguments in [
        "--help",
        "--version",
        "run --help",
        "list",
        "list --json",
        "man",
        "completions bash",
        "doctor",
        SHORT,
        &format!("{SHORT} --json"),
        &format!("{SHORT} --processes"),
        "sweep brk1 --cpus 1,2 -s 1 --duration 0.02 --warmup 0",
        "sweep brk1 --cpus 1 --machine arm64-16 --duration 0.001 --seeds 1 --format csv",
        "profile mmap1 --machine arm64-16 --duration 0.001",
        "check model --steps 100",
        &report,
        &compare,
    ] {
        let mut command = scalevm(arguments);
        let output = command.current_dir(&folder.0).stdout(full()).output();
        let output = output.expect("the command starts");
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        let last = errors.lines().last().unwrap_or_default();
        let expected = "scalevm: standard output: No space left on device (os error 28)";
        assert_eq!(last, expected, "{arguments}: {errors}");
        assert!(!errors.contains("panicked"), "{arguments}: {errors}");
    }
}

#[test]
fn a_full_standard_error_keeps_nothing_from_being_measured() {
    let mut command = scalevm("run brk1 -t 64 -s 1 --duration 0.02 --warmup 0");
    let output = command.stderr(full()).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "a warning is lost");
    assert!(text(&output.stdout).contains("average:"));
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_run_and_leaves_nothing() {
    let place = Place::new("closed");
    let source = place.source(
        "counts.c",
        "char *testcase_description = \"counts\";\n\
         void testcase(unsigned long long *iterations, unsigned long nr)\n\
         { for (;;) (*(volatile unsigned long long *)iterations)++; }\n",
    );
    let mut command = place.command(&format!("run {source} -s 0 --duration 0.01 --warmup 0"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().expect("the command starts");
    let mut line = String::new();
    let stdout = run.stdout.take().expect("piped");
    let read = BufReader::with_capacity(1, stdout).read_line(&mut line);
    assert!(read.is_ok() && line.starts_with("testcase:"), "{line}");
    let output = run.wait_with_output().expect("the end");
    assert_eq!(output.status.code(), Some(128 + libc::SIGPIPE));
    assert_eq!(text(&output.stderr), "");
    place.assert_clean();
}

#[test]
fn a_page_goes_through_devices_and_links() {
    let folder = Scratch::folder("outputs-page");
    let report = |code, output: &str| {
        let mut command = scalevm("report -o");
        let command = command.args([output, &data("os")]).current_dir(&folder.0);
        exits(code, command)
    };
    // By links, so that a file replaced in error is not the device.
    for device in ["full", "null"] {
        symlink(format!("/dev/{device}"), folder.0.join(device)).expect("a link");
    }
    let (stdout, stderr) = report(2, "full");
    assert_eq!(stdout, "");
    let expected = "scalevm: full: No space left on device (os error 28)\n";
    assert_eq!(stderr, expected);
    report(0, "null");
    for device in ["full", "null"] {
        let kind = fs::metadata(folder.0.join(device)).expect("a device");
        assert!(kind.file_type().is_char_device(), "it is still a device");
    }
    folder.write("page", "old");
    symlink("page", folder.0.join("link")).expect("a link");
    report(0, "link");
    let link = fs::symlink_metadata(folder.0.join("link")).expect("a link");
    assert!(link.is_symlink());
    let page = fs::read_to_string(folder.0.join("page")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn what_can_not_be_written_is_said_before_anything_is_measured() {
    let simulated = "--machine arm64-16 --duration 0.001";
    for (arguments, what) in [
        (
            "calibrate --quick -o no/such/file".to_owned(),
            "no/such/file: ",
        ),
        (
            format!("profile mmap1 {simulated} -o /dev/null/pictures"),
            "/dev/null/pictures: ",
        ),
        (
            format!("profile mmap1 {simulated} --store /dev/null/store"),
            "/dev/null/store: ",
        ),
        (
            format!("run mmap1 {simulated} --store /dev/null/store"),
            "/dev/null/store: ",
        ),
    ] {
        let errors = failure(&arguments, 2);
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.starts_with(&format!("scalevm: {what}")), "{errors}");
    }
}

/// Profiles in `folder` for a moment.
fn profile(folder: &Scratch, arguments: &str) -> String {
    let line = format!("profile mmap1 --machine arm64-16 --duration 0.001 {arguments}");
    exits(0, scalevm(&line).current_dir(&folder.0)).1
}

#[test]
fn a_profile_overwrites_no_other() {
    let folder = Scratch::folder("outputs-profiles");
    profile(&folder, "-t 2");
    let itself = folder
        .0
        .join("profile-mmap1-sim-scalevm-2-processes/profile.jsonl");
    let first = fs::read(&itself).expect("a profile");
    let said = profile(&folder, "-t 2 --seed 7");
    assert!(
        said.contains("profile-mmap1-sim-scalevm-2-processes-2"),
        "{said}"
    );
    profile(&folder, "-t 2 --threads");
    profile(&folder, "-t 2 --vm freebsd-di");
    assert_eq!(fs::read(&itself).expect("a profile"), first);
    let names = folder.files().into_iter();
    let names: Vec<_> = names
        .map(|path| path.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "profile-mmap1-sim-freebsd-di-2-processes",
            "profile-mmap1-sim-scalevm-2-processes",
            "profile-mmap1-sim-scalevm-2-processes-2",
            "profile-mmap1-sim-scalevm-2-threads",
        ]
    );
    let difference = |before: &str, after: &str| {
        let mut command = scalevm("profile --json --diff");
        let [before, after] = [before, after].map(|name| format!("profile-mmap1-sim-{name}"));
        let (line, said) = exits(0, command.args([before, after]).current_dir(&folder.0));
        (json(&line).remove(0)["unlike"].clone(), said)
    };
    let (unlike, said) = difference("scalevm-2-processes", "freebsd-di-2-processes");
    assert_eq!((unlike, said.as_str()), (serde_json::json!([]), ""));
    let (unlike, said) = difference("scalevm-2-processes", "scalevm-2-threads");
    assert_eq!(unlike, serde_json::json!(["2 processes against 2 threads"]));
    assert!(
        said.contains("unlike things (2 processes against 2 threads)"),
        "{said}"
    );
}

/// Interrupts a run once it has printed some samples; returns its output.
fn interrupted(samples: &str) -> Vec<Value> {
    let line = format!("run brk1 --duration 0.02 --warmup 0 --json -s {samples}");
    let mut command = scalevm(&line);
    let mut run = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdout = BufReader::new(run.stdout.take().expect("piped"));
    let mut lines = String::new();
    for _ in 0..2 {
        stdout.read_line(&mut lines).expect("a line");
    }
    // SAFETY: a process that this test has started and not yet reaped.
    assert_eq!(unsafe { libc::kill(run.id() as i32, libc::SIGINT) }, 0);
    std::io::Read::read_to_string(&mut stdout, &mut lines).expect("the rest");
    assert_eq!(run.wait().expect("the end").code(), Some(130));
    json(&lines)
}

#[test]
fn an_interrupted_run_sums_up_what_was_finished() {
    let lines = interrupted("100000");
    let summary = lines.last().expect("a line");
    assert_eq!(summary["kind"], "summary");
    assert_eq!(summary["interrupted"], true);
    assert_eq!(summary["sample"], (lines.len() - 1) as u64);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let records = stats::record::parse("f", text.as_bytes()).expect("sound");
    assert!(
        !stats::record::runs(&records)[0].complete,
        "it counts in no comparison"
    );
    let lines = interrupted("0");
    let summary = lines.last().expect("a line");
    assert_eq!(summary["kind"], "summary");
    assert_eq!(
        summary["interrupted"],
        Value::Null,
        "a run without an end is meant to be"
    );
}

#[test]
fn a_torn_last_line_is_left_out_by_compare_too() {
    let line = format!("{SHORT} --json");
    let mut whole = (0..4).map(|_| success(&line)).collect::<String>();
    whole.push_str("{\"kind\":\"sample\",\"workl");
    let torn = Scratch::file("outputs-torn.jsonl", &whole);
    let mut command = scalevm("compare --minimum-effect 1000");
    let (stdout, stderr) = exits(0, command.args([torn.path(), torn.path()]));
    assert!(stdout.contains("4 of A, 4 of B"), "{stdout}");
    let warning = ":13: the last line is incomplete and was ignored";
    assert_eq!(stderr.matches(warning).count(), 2, "{stderr}");
}

#[test]
fn a_busy_machine_is_warned_of() {
    let others = (0..2).map(|_| {
        let mut busy = Command::new("sh");
        busy.args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell")
    });
    let mut others: Vec<_> = others.collect();
    let half = "-s 1 --warmup 1 --duration 0.5";
    let said = [
        scalevm(&format!("run brk1 {half}")).output(),
        scalevm(&format!("run brk1 {half} --json")).output(),
        scalevm(&format!("sweep brk1 --cpus 1 {half}")).output(),
        scalevm("compare --workload brk1 --runs 2 --duration 0.3 os os").output(),
    ];
    for other in &mut others {
        other.kill().expect("killed");
        other.wait().expect("reaped");
    }
    for output in said {
        let errors = text(&output.expect("the command starts").stderr);
        assert!(errors.contains("scalevm: warning: others use "), "{errors}");
        assert!(errors.contains("figures will be noisy"), "{errors}");
    }
    let simulated = "run brk1 --machine arm64-16 --duration 0.001 --seeds 1";
    let (_, errors) = exits(0, &mut scalevm(simulated));
    assert_eq!(errors, "", "virtual time is quiet");
}

#[test]
fn tables_are_markdown_or_values_for_other_programs() {
    let line = "sweep mmap1 --machine arm64-16 --cpus 1,2 --duration 0.001 --seeds 2";
    let csv = success(&format!("{line} --format csv"));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0],
        [
            "on", "tasks", "median", "low", "high", "per task", "speedup"
        ]
    );
    assert_eq!((rows.len(), rows[2][1]), (3, "2"), "{csv}");
    assert!(
        rows[1][2].parse::<f64>().is_ok_and(|rate| rate > 1000.0),
        "{csv}"
    );
    let (markdown, said) = exits(0, &mut scalevm(&format!("{line} --format markdown")));
    assert!(markdown.starts_with("| on "), "{markdown}");
    assert!(
        markdown
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("|--")),
        "{markdown}"
    );
    assert!(
        said.contains("bottleneck: ") && !markdown.contains("bottleneck: "),
        "{said}"
    );
    let numbers = Scratch::file("outputs-numbers", "1\n2\n3\n4\n5\n");
    let mut compare = scalevm("compare --verdict --format csv");
    let (csv, _) = exits(3, compare.args([numbers.path(), numbers.path()]));
    let of = "files of numbers";
    assert!(
        csv.starts_with("table,set,n,min,max,median,average,stddev\n"),
        "{csv}"
    );
    assert!(
        csv.contains(&format!("{of},{},5,1,5,3,3,", numbers.path())),
        "{csv}"
    );
    assert!(
        csv.contains("table,A,B,B / A,low,high,p,verdict\n"),
        "{csv}"
    );
    assert!(!failure(&format!("{line} --format csv --json"), 2).is_empty());
    assert!(Path::new(numbers.path()).exists());
}
