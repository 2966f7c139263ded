//! Workloads of the user's own: that they run, in both modes.

mod support;

use support::command::text;
use support::place::{MODES, Place, QUICK, average};

const COUNTS: &str = r#"
#include <unistd.h>

char *testcase_description = "Counting";

void testcase(unsigned long long *iterations, unsigned long nr)
{
    for (;;) {
        getppid();
        (*iterations)++;
    }
}
"#;

/// Writes a line for each of its calls to the file that OWN_LOG names.
const TELLS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void tell(const char *what, unsigned long number)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "%s %lu\n", what, number);
    int file = open(getenv("OWN_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, line, length) != length)
        abort();
    close(file);
}

char *testcase_description = "Telling";

void testcase_prepare(unsigned long nr_tasks) { tell("prepare", nr_tasks); }

void testcase_cleanup(void) { tell("cleanup", 0); }

void testcase(unsigned long long *iterations, unsigned long nr)
{
    tell("task", nr);
    for (;;)
        (*(volatile unsigned long long *)iterations)++;
}
"#;

/// Counts the bytes that another task sends.
const TWO: &str = r#"
#include <stdlib.h>
#include <unistd.h>

extern void new_task(void *(func)(void *), void *arg);

char *testcase_description = "Two tasks and a pipe";

static void *send(void *arg)
{
    int *ends = arg;
    for (;;)
        if (write(ends[1], "x", 1) != 1)
            abort();
    return 0;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    int *ends = malloc(2 * sizeof(int));
    char byte;
    if (pipe(ends))
        abort();
    new_task(send, ends);
    while (read(ends[0], &byte, 1) == 1)
        (*iterations)++;
}
"#;

/// Aborts unless the process it runs in is in the state of a program's start.
const CLEAN: &str = r#"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *testcase_description = "A clean process";

static __thread volatile sig_atomic_t rung;
static void ring(int signal) { rung = signal; }

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "not clean: %s\n", what);
        abort();
    }
}

static int threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *one; (one = readdir(tasks));)
        count += one->d_name[0] != '.';
    closedir(tasks);
    return count;
}

void testcase_prepare(unsigned long nr_tasks)
{
    int signals[] = { SIGINT, SIGTERM, SIGPIPE, SIGSEGV, SIGALRM, SIGUSR1, SIGCHLD };
    struct sigaction action;
    sigset_t blocked;
    for (unsigned i = 0; i < 5 + (getenv("OWN_MODE")[0] == 'p'); i++) {
        sigaction(signals[i], 0, &action);
        if (signals[i] != SIGSEGV)
            require(action.sa_handler == SIG_DFL, "a handler");
    }
    sigprocmask(SIG_SETMASK, 0, &blocked);
    for (int signal = 1; signal < 32; signal++)
        require(!sigismember(&blocked, signal), "a blocked signal");
    require(threads() == 1, "a thread");
    printf("printed\n");
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, 0, &blocked);
    for (int signal = 1; signal < 32; signal++)
        require(!sigismember(&blocked, signal), "a blocked signal of a task");
    if (getenv("OWN_MODE")[0] == 'p')
        require(threads() == 1, "a thread of a task");
    signal(SIGUSR1, ring);
    for (;;) {
        rung = 0;
        raise(SIGUSR1);
        require(rung == SIGUSR1, "a lost signal");
        (*iterations)++;
    }
}
"#;

#[test]
fn a_c_file_runs_in_both_modes() {
    let place = Place::new("runs");
    let file = place.source("counts.c", COUNTS);
    for mode in MODES {
        let stdout = place.success(&format!("run {file} -t 2 {QUICK} {mode}"), &[]);
        assert_eq!(stdout.lines().next(), Some("testcase:Counting"));
        assert!(average(&stdout) > 0.0, "{stdout}");
        let json = place.success(&format!("run {file} -t 2 {QUICK} {mode} --json"), &[]);
        for line in json.lines() {
            let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(
                (&record["workload"], &record["on"], &record["unit"]),
                (&"counts".into(), &"os".into(), &"operations/s".into())
            );
            assert!(record["min"].as_f64() > Some(0.0), "{line}");
        }
        assert_eq!(json.lines().count(), 2, "{json}");
    }
}

#[test]
fn a_sweep_and_a_comparison_run_it_too() {
    let place = Place::new("sweeps");
    let file = place.source("counts.c", COUNTS);
    let stdout = place.success(&format!("sweep {file} --cpus 1,2 {QUICK}"), &[]);
    let first = stdout.lines().next();
    assert_eq!(
        first,
        Some("counts (Counting), processes, iterations a second")
    );
    assert!(stdout.contains("os: peak "), "{stdout}");
    let test = "--self-test --comparisons 1 --runs 2 --duration 0.02";
    // The test does not ask for a quiet machine.
    let output = place.run(&format!("compare {test} --workload {file}"), &[]);
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("os: counts (Counting)"), "{stdout}");
}

#[test]
fn it_is_prepared_once_and_cleaned_up_once() {
    let place = Place::new("prepares");
    let file = place.source("tells.c", TELLS);
    let log = place.file("log");
    for mode in MODES {
        place.success(
            &format!("run {file} -t 3 {QUICK} {mode}"),
            &[("OWN_LOG", &log)],
        );
        let text = std::fs::read_to_string(&log).expect("the log");
        std::fs::remove_file(&log).expect("removed");
        let mut lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines.len()), ("prepare 3", 5), "{text}");
        lines[1..4].sort_unstable();
        assert_eq!(lines[1..], ["task 0", "task 1", "task 2", "cleanup 0"]);
    }
}

#[test]
fn a_test_case_may_start_tasks_of_its_own() {
    let place = Place::new("starts");
    let file = place.source("two.c", TWO);
    let object = place.object(&file, "two.so");
    for what in [&file, &object] {
        for mode in MODES {
            let stdout = place.success(&format!("run {what} -t 2 {QUICK} {mode}"), &[]);
            assert_eq!(stdout.lines().next(), Some("testcase:Two tasks and a pipe"));
            assert!(average(&stdout) > 0.0, "{stdout}");
        }
    }
}

#[test]
fn it_starts_in_a_clean_process_and_its_output_is_no_data() {
    let place = Place::new("clean");
    let file = place.source("clean.c", CLEAN);
    for mode in MODES {
        let environment = [("OWN_MODE", &mode[2..])];
        let output = place.run(&format!("run {file} -t 2 {QUICK} {mode}"), &environment);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        assert_eq!(errors.matches("printed").count(), 1, "{errors}");
        let stdout = text(&output.stdout);
        assert!(!stdout.contains("printed"), "{stdout}");
    }
}

#[test]
fn tasks_are_stopped_whatever_they_hold() {
    let place = Place::new("holds");
    let counts = COUNTS.replace("getppid();", "fflush(stdout);");
    let cleanup = "void testcase_cleanup(void) { write(1, \"clean\\n\", 6); }\n";
    let file = place.source("holds.c", &format!("#include <stdio.h>\n{counts}{cleanup}"));
    for mode in MODES {
        let output = place.run(&format!("run {file} -t 3 {QUICK} {mode}"), &[]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        assert!(errors.contains("clean\n"), "{errors}");
    }
}

#[test]
fn cflags_reach_the_compiler() {
    let place = Place::new("flags");
    let text = COUNTS.replace("\"Counting\"", "NAME");
    let file = place.source("named.c", &text);
    let flags = [("CFLAGS", "-DNAME=\"Flagged\"")];
    let stdout = place.success(&format!("run {file} {QUICK}"), &flags);
    assert_eq!(stdout.lines().next(), Some("testcase:Flagged"));
}
