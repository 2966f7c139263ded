//! Commands as workloads.

mod support;

use support::command::text;
use support::place::{Place, QUICK, average, within_reason};

/// A run of a command that is one argument.
fn run(place: &Place, command: &str, more: &str) -> std::process::Output {
    let mut run = place.command("run --command");
    run.arg(command).args(more.split_whitespace());
    let output = run.output().expect("the command starts");
    place.assert_clean();
    output
}

#[test]
fn completions_are_counted() {
    let place = Place::new("counted");
    for command in ["true", "test 1 = 1", "exit 0"] {
        let output = run(&place, command, "-t 2 -s 1 --duration 0.5 --warmup 0");
        let (stdout, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let first = stdout.lines().next().expect("a line");
        assert_eq!(first, format!("testcase:{command}"));
        assert!(average(&stdout) > 0.0, "{stdout}");
    }
}

#[test]
fn results_name_the_program_and_the_command() {
    let place = Place::new("named");
    let output = run(&place, "/bin/echo some words", &format!("{QUICK} --json"));
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    for line in stdout.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(record["workload"], "echo");
        assert_eq!(record["unit"], "completions/s");
        if record["kind"] == "summary" {
            assert!(line.contains("\"/bin/echo some words\""), "{line}");
        }
    }
    assert!(text(&output.stderr).is_empty(), "what it prints is dropped");
    let sweep = place.success(&format!("sweep --command true --cpus 1 {QUICK}"), &[]);
    assert!(
        sweep.starts_with("true (true), processes, completions a second\n"),
        "{sweep}"
    );
}

#[test]
fn a_command_that_fails_says_why() {
    let place = Place::new("fails");
    let endless = "-s 0 --duration 0.05";
    for (command, expected) in [
        ("false", "scalevm: false: task 0: exit status: 1\n"),
        (
            "sh -c 'echo first >&2; echo the reason >&2; exit 3'",
            "scalevm: sh: task 0: exit status: 3: the reason\n",
        ),
        ("kill -9 $$", "scalevm: kill: task 0: signal: 9 (SIGKILL)\n"),
        (
            "/nonexistent/program",
            "scalevm: program: task 0: exit status: 127: No such file or directory (os error 2)\n",
        ),
    ] {
        let output = run(&place, command, endless);
        assert_eq!(text(&output.stderr), expected);
        assert_eq!(output.status.code(), Some(4));
    }
    // A complaint is of the last start only, and none is one.
    let file = place.file("once");
    let once = format!("test -e {file} && exit 5; echo early >&2; touch {file}");
    let output = run(&place, &once, endless);
    assert_eq!(
        text(&output.stderr),
        "scalevm: test: task 0: exit status: 5\n"
    );
}

#[test]
fn exactly_one_thing_is_run() {
    let place = Place::new("usage");
    for arguments in [
        "run mmap1 --command true",
        "run",
        "sweep",
        "run --command true --threads",
    ] {
        assert!(!place.failure(arguments, &[], 2).is_empty(), "{arguments}");
    }
    let output = run(&place, "  ", "");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_command_ends_with_the_run() {
    let place = Place::new("ends");
    let file = place.file("started");
    // Its argument tells which run it belongs to; it has no shell above it that would be killed
    // alone.
    let script = place.source("waits.sh", "touch $1; while :; do sleep 1; done\n");
    let command = format!("sh {script} {file}");
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let mut run = place.command("run -s 0 --duration 0.05 -t 2 --command");
        let mut run = run.arg(&command).spawn().expect("the command starts");
        within_reason("a start", || std::path::Path::new(&file).exists());
        // SAFETY: a process that this test has started and not yet reaped.
        assert_eq!(unsafe { libc::kill(run.id().cast_signed(), signal) }, 0);
        run.wait().expect("the end");
        place.assert_clean();
        std::fs::remove_file(&file).expect("removed");
    }
}
