//! Profiles of commands: those that are repeated, and those that are watched by time.

use super::support::command::text;
use super::support::place::{Place, within_reason};
use super::support::server::Server;
use super::{lost, sees_locks};
use serde_json::Value;
use std::process::{Output, Stdio};
use std::{fs, thread};

/// A server: its threads fight for a lock, and it starts a process again and again. It ends by
/// SIGTERM only, and says so in the file `LOG`, where each start of it is a line.
const SERVER: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

pthread_mutex_t planted_mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void planted_contention(void)
{
    pthread_mutex_lock(&planted_mutex);
    usleep(500);
    pthread_mutex_unlock(&planted_mutex);
}

static void *fight(void *nothing)
{
    for (;;)
        planted_contention();
    return nothing;
}

static void say(const char *what)
{
    FILE *file = fopen(getenv("LOG"), "a");
    fprintf(file, "%s\n", what);
    fclose(file);
}

static void *ends(void *signals)
{
    int signal;
    sigwait(signals, &signal);
    say("ended");
    exit(0);
}

int main(void)
{
    pthread_t thread;
    sigset_t signals;
    say("started");
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, 0);
    pthread_create(&thread, 0, ends, &signals);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, 0, fight, 0);
    for (;;) {
        pid_t child = fork();
        if (!child) {
            for (volatile long work = 0; work < 10000000; work++)
                ;
            _exit(0);
        }
        waitpid(child, 0, 0);
        usleep(20000);
    }
}
"#;

/// A profile of `command`, and what the command says of itself.
fn output(place: &Place, command: &str, more: &str) -> (Output, String) {
    let log = place.file("log");
    let mut profile = place.command("profile --json --command");
    profile.arg(command).args(more.split_whitespace());
    let output = profile.env("LOG", &log).output().expect("it starts");
    place.assert_clean();
    let said = fs::read_to_string(&log).unwrap_or_default();
    let _ = fs::remove_file(log);
    (output, said)
}

/// The profile and the messages of a run that ends with the exit code `code`.
fn seen(output: &Output, code: i32) -> (Value, String) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    let profile = serde_json::from_str(&text(&output.stdout)).expect("one line of JSON");
    (profile, errors)
}

fn server(place: &Place) -> String {
    Server::built(place, "server", SERVER)
}

/// Asserts that the profile is of `seconds` in which threads waited for the server's lock.
fn assert_timed(profile: &Value, seconds: f64) {
    assert!(profile["rate"].is_null() && profile["rate_unwatched"].is_null());
    let span = profile["seconds"].as_f64().expect("a number");
    assert!((0.7 * seconds..seconds + 1.0).contains(&span), "{span}");
    let waited = lost(
        profile,
        "pthread_mutex planted_mutex",
        "futex",
        "planted_contention",
    );
    assert!(
        (0.75..1.05).contains(&(waited / span)),
        "{waited} of {span}"
    );
}

#[test]
fn a_server_is_watched_by_time_and_ended_gently() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("timed-server");
    let program = server(&place);
    let (output, said) = output(&place, &program, "--duration 1.5");
    let (profile, _) = seen(&output, 0);
    assert_timed(&profile, 1.5);
    assert_eq!(said, "started\nended\n");
    assert_eq!(
        (&profile["workload"], &profile["on"]),
        (&"server".into(), &"os".into())
    );
    // The server's threads and its children, and nobody who only drives them.
    let stacks = profile["busy"].as_object().expect("stacks");
    let all: f64 = stacks.values().filter_map(Value::as_f64).sum();
    let its = stacks
        .iter()
        .filter(|(stack, _)| stack.starts_with("server;"));
    let its: f64 = its.filter_map(|(_, seconds)| seconds.as_f64()).sum();
    assert!(its > 0.01 && its > 0.9 * all, "{its} of {all}");
}

#[test]
fn ctrl_c_is_the_end_where_none_is_named() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("timed-interrupt");
    let (program, log) = (server(&place), place.file("log"));
    let mut command = place.command("profile --json --command");
    let command = command.arg(&program).env("LOG", &log);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    within_reason("the server", || fs::exists(&log).unwrap_or(false));
    thread::sleep(std::time::Duration::from_millis(2500));
    // SAFETY: sends a signal to a child that this test has not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let output = child.wait_with_output().expect("it ends");
    let (profile, errors) = seen(&output, 0);
    assert_timed(&profile, 2.5);
    assert!(
        errors.contains("server has not completed within 1 s"),
        "{errors}"
    );
    assert_eq!(fs::read_to_string(&log).expect("a log"), "started\nended\n");
}

#[test]
fn a_long_command_is_watched_until_it_ends_and_runs_once() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("timed-end");
    let program = server(&place);
    // With a signal of its own, so that it ends by itself.
    let command = format!("timeout --preserve-status 2.5 {program}");
    let (first, said) = output(&place, &command, "");
    let (profile, errors) = seen(&first, 0);
    assert_timed(&profile, 2.5);
    assert_eq!(said, "started\nended\n");
    assert!(!errors.contains("failed"), "{errors}");
    let (failed, _) = output(&place, "sleep 3; echo the reason >&2; exit 3", "");
    let (profile, errors) = seen(&failed, 0);
    let note = "the command failed: sleep: task 0: exit status: 3: the reason";
    assert!(profile["notes"].to_string().contains(note), "{errors}");
}

#[test]
fn a_quick_command_is_repeated_and_has_a_rate() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("timed-quick");
    let quick = "--samples 2 --duration 0.4 --warmup 0";
    let (counted, _) = output(&place, "true", quick);
    let (profile, _) = seen(&counted, 0);
    assert!(profile["rate"].as_f64() > Some(1.0), "{}", profile["rate"]);
    // Each start is a line: it is repeated, although none of its samples has ended at the first.
    let (counted, said) = output(&place, "echo started >> $LOG; sleep 0.1", quick);
    let (profile, _) = seen(&counted, 0);
    assert!(profile["rate"].as_f64() > Some(1.0) && said.lines().count() > 4);
    let (failed, _) = output(&place, "false", quick);
    assert_eq!(failed.status.code(), Some(4));
    assert_eq!(
        text(&failed.stderr),
        "scalevm: false: task 0: exit status: 1\n"
    );
}

#[test]
fn what_does_not_end_is_killed_with_all_that_it_has_started() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("timed-stubborn");
    let file = place.file("marker");
    // Both ignore the signal, and one has left the group.
    let command = format!("trap '' TERM; setsid tail -f {file} & tail -f {file}; wait");
    fs::write(&file, "").expect("written");
    let (stubborn, _) = output(&place, &command, "--duration 0.5");
    let (profile, _) = seen(&stubborn, 0);
    assert!(profile["rate"].is_null());
}
