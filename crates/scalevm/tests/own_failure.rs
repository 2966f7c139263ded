//! Workloads of the user's own that fail, and runs of them that are cut short.

mod support;

use support::command::text;
use support::place::{MODES, Place, QUICK, within_reason};

/// A test case whose task 1 runs `body`, while the others count.
fn task_1(body: &str) -> String {
    format!(
        "#include <assert.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         char *testcase_description = \"Failing\";\n\
         void testcase(unsigned long long *iterations, unsigned long nr)\n\
         {{\n    if (nr == 1) {{ {body} }}\n    for (;;) (*iterations)++;\n}}\n"
    )
}

#[test]
fn what_can_not_be_compiled_is_shown() {
    let place = Place::new("syntax");
    let file = place.source("wrong.c", "void testcase(void) { missing(; }\n");
    let errors = place.failure(&format!("run {file} {QUICK}"), &[], 2);
    assert!(
        errors.contains("wrong.c:1:") && errors.contains("error:"),
        "{errors}"
    );
    let last = errors.lines().last().expect("a line");
    let expected = format!("scalevm: {file}: cc cannot compile it (exit status: 1)");
    assert_eq!(last, expected);
    let errors = place.failure(&format!("run {file}"), &[("CC", "/nonexistent/cc -x")], 2);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(
        errors.contains("expected a C compiler, in PATH or named by CC: /nonexistent/cc: "),
        "{errors}"
    );
}

#[test]
fn what_is_no_test_case_is_refused() {
    let place = Place::new("refused");
    let empty = place.source("empty.c", "int other;\n");
    let undefined = "void nowhere(void);\nvoid testcase(void) { nowhere(); }\n";
    let undefined = place.source("undefined.c", undefined);
    let exits = "#include <stdlib.h>\n__attribute__((constructor)) void first(void) { exit(3); }\n";
    let exits = place.source("exits.c", exits);
    let text = place.source("text.so", &"not a shared object\n".repeat(99));
    let other = place.source("other.txt", "void testcase(void) {}");
    let (missing, directory) = (place.file("missing.c"), place.file("tmp"));
    for (file, why) in [
        (&empty, "function `testcase` not found"),
        (&undefined, "undefined symbol: nowhere"),
        (&exits, "loading it ends the process (exit status: 3)"),
        (&text, "invalid ELF header"),
        (&other, "expected a C file (.c) or a shared object (.so)"),
        (&missing, "No such file or directory"),
        (&directory, "not a file"),
    ] {
        let errors = place.failure(&format!("run {file} {QUICK}"), &[], 2);
        let last = errors.lines().last().expect("a line");
        assert!(last.starts_with(&format!("scalevm: {file}: ")), "{errors}");
        assert!(last.contains(why), "{errors}");
    }
}

#[test]
fn only_the_kernel_runs_it() {
    let place = Place::new("kernel");
    let file = place.source("any.c", &task_1(""));
    for arguments in [
        format!("run {file} --on hosted"),
        format!("run {file} --on sim"),
        format!("sweep {file} --vm scalevm"),
        format!("compare --workload {file} os hosted"),
        "run --command true --on hosted".into(),
    ] {
        let errors = place.failure(&arguments, &[], 2);
        let expected = "a workload of your own can run only on a kernel: --on os, or a C file with \
                        --on kernel";
        assert!(errors.contains(expected), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn a_task_that_ends_is_named() {
    let place = Place::new("ends");
    for (name, body, why) in [
        (
            "asserts",
            "assert(nr == 0);",
            "ended on its own: signal: 6 (SIGABRT)",
        ),
        (
            "faults",
            "*(volatile int *)8 = 1;",
            "ended on its own: signal: 11 (SIGSEGV)",
        ),
        ("exits", "exit(3);", "ended on its own: exit status: 3"),
        (
            "returns",
            "return;",
            "testcase returned; it must run until it is killed",
        ),
    ] {
        let file = place.source(&format!("{name}.c"), &task_1(body));
        for mode in MODES {
            let arguments = format!("run {file} -t 3 -s 0 --duration 0.05 {mode}");
            let errors = place.failure(&arguments, &[], 4);
            let expected = format!("scalevm: {name}: task 1: {why}").replace(": ended", " ended");
            assert!(
                errors
                    .lines()
                    .last()
                    .is_some_and(|last| last.starts_with(&expected)),
                "{errors}"
            );
            let told = errors.contains("Assertion `nr == 0' failed");
            assert_eq!(told, name == "asserts", "{errors}");
        }
    }
}

#[test]
fn the_step_that_fails_is_named() {
    let place = Place::new("steps");
    for (step, argument) in [("prepare", "unsigned long nr"), ("cleanup", "void")] {
        let text = task_1("") + &format!("void testcase_{step}({argument}) {{ exit(7); }}\n");
        let file = place.source(&format!("{step}.c"), &text);
        for mode in MODES {
            let errors = place.failure(&format!("run {file} {QUICK} {mode}"), &[], 4);
            let expected =
                format!("scalevm: {step}: testcase_{step}: the process ended: exit status: 7\n");
            assert_eq!(errors, expected);
        }
    }
}

/// Leaves children, their children and threads about; tells when it is cleaned up.
const LEAVES: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *testcase_description = "Leaving things about";
static char name[4096];

void testcase_prepare(unsigned long nr)
{
    snprintf(name, sizeof(name), "%s.kept", getenv("OWN_LOG"));
    fclose(fopen(name, "w"));
}

void testcase_cleanup(void) { unlink(name); }

static void *spin(void *arg)
{
    for (;;) {}
    return 0;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    pthread_t thread;
    if (fork() == 0) {
        if (fork() == 0)
            for (;;) pause();
        for (;;) pause();
    }
    pthread_create(&thread, 0, spin, 0);
    fclose(fopen(getenv("OWN_LOG"), "w"));
    for (;;)
        (*iterations)++;
}
"#;

#[test]
fn nothing_is_left_after_ctrl_c() {
    let place = Place::new("interrupted");
    let file = place.source("leaves.c", LEAVES);
    let (log, kept) = (place.file("log"), place.file("log.kept"));
    for mode in MODES {
        for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
            let run = place.endless(&format!("run {file} -t 2 {mode}"), &log);
            // SAFETY: a process that this test has started and not yet reaped.
            assert_eq!(unsafe { libc::kill(run.id().cast_signed(), signal) }, 0);
            let output = run.wait_with_output().expect("the end");
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{errors}");
            place.assert_clean();
            assert!(!std::path::Path::new(&kept).exists(), "not cleaned up");
            std::fs::remove_file(&log).expect("removed");
        }
    }
}

/// Each task leaves a process in a session of its own, whose parent is gone, and its child.
const ESCAPES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void testcase(unsigned long long *iterations, unsigned long nr)
{
    volatile unsigned long long *count = iterations;
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            fork();
            fclose(fopen(getenv("OWN_LOG"), "w"));
            for (;;) pause();
        }
        _exit(0);
    }
    while (access(getenv("OWN_LOG"), F_OK))
        usleep(1000);
    for (;;)
        (*count)++;
}
"#;

#[test]
fn no_session_of_its_own_saves_a_process() {
    let place = Place::new("escapes");
    let file = place.source("escapes.c", ESCAPES);
    let log = place.file("log");
    for mode in MODES {
        // Ends with nothing left, or fails.
        place.success(
            &format!("run {file} -t 2 -s 1 --duration 0.3 --warmup 0 {mode}"),
            &[("OWN_LOG", &log)],
        );
        std::fs::remove_file(&log).expect("removed");
        let run = place.endless(&format!("run {file} -t 2 {mode}"), &log);
        send(&run, libc::SIGTERM);
        let output = run.wait_with_output().expect("the end");
        assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
        place.assert_clean();
        std::fs::remove_file(&log).expect("removed");
    }
}

fn send(run: &std::process::Child, signal: i32) {
    // SAFETY: a process that this test has started and not yet reaped.
    assert_eq!(unsafe { libc::kill(run.id().cast_signed(), signal) }, 0);
}

#[test]
fn a_signal_that_is_sent_twice_is_one_and_a_hang_up_is_one_too() {
    let place = Place::new("twice");
    let file = place.source("leaves.c", LEAVES);
    let log = place.file("log");
    for (signal, code) in [(libc::SIGTERM, 143), (libc::SIGHUP, 129)] {
        let run = place.endless(&format!("run {file} -t 2"), &log);
        send(&run, signal);
        send(&run, signal);
        let output = run.wait_with_output().expect("the end");
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        // It has cleaned up, and so it has measured to the end.
        place.assert_clean();
        std::fs::remove_file(&log).expect("removed");
    }
}

#[test]
fn an_interrupted_run_prints_its_average() {
    for signal in [libc::SIGHUP, libc::SIGTERM] {
        let mut command =
            support::command::scalevm("run brk1 -t 2 -s 0 --duration 0.02 --warmup 0");
        let mut run = command
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = std::io::BufReader::new(run.stdout.take().expect("a pipe"));
        let mut seen = String::new();
        // The line with the first sample.
        while !seen.contains("total:") {
            use std::io::BufRead;
            assert_ne!(lines.read_line(&mut seen).expect("read"), 0, "{seen}");
        }
        send(&run, signal);
        send(&run, signal);
        std::io::Read::read_to_string(&mut lines, &mut seen).expect("read");
        assert_eq!(run.wait().expect("the end").code(), Some(128 + signal));
        assert!(
            seen.lines().any(|line| line.starts_with("average:")),
            "{seen}"
        );
    }
}

#[test]
fn what_counts_nothing_or_backwards_was_not_measured() {
    let place = Place::new("counts");
    let down = "(*(volatile unsigned long long *)iterations)--; usleep(1000);";
    let nothing = "counts: no task counted any operation in ";
    let backwards = "counts: task 0: its count went backwards, from ";
    for (name, from, body, samples, why) in [
        ("nothing", "", "getppid();", "-s 2 --warmup 1", nothing),
        (
            "backwards",
            "*iterations = 1000000000;",
            down,
            "-s 2 --warmup 1",
            backwards,
        ),
        // There is no second sample that would have less than the first.
        ("below-zero", "", down, "-s 1 --warmup 0", backwards),
    ] {
        let text = format!(
            "#include <unistd.h>\nvoid testcase(unsigned long long *iterations, unsigned long nr) \
             {{ {from} usleep(10000); for (;;) {{ {body} }} }}\n"
        );
        let folder = place.file(name);
        std::fs::create_dir(&folder).expect("a folder");
        let file = place.source(&format!("{name}/counts.c"), &text);
        let errors = place.failure(&format!("run {file} {samples} --duration 0.05"), &[], 4);
        let last = errors.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("scalevm: {why}")), "{errors}");
    }
}

#[test]
fn nothing_runs_on_after_scalevm_is_killed() {
    let place = Place::new("killed");
    let file = place.source("leaves.c", LEAVES);
    let (object, log) = (place.object(&file, "leaves.so"), place.file("log"));
    for mode in MODES {
        let mut run = place.endless(&format!("run {object} -t 2 {mode}"), &log);
        run.kill().expect("killed");
        run.wait().expect("reaped");
        within_reason("the end of all", || place.processes().is_empty());
        std::fs::remove_file(&log).expect("removed");
    }
}
