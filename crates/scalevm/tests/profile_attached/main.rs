//! Profiles of programs that already run.

mod loads;
#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::command::{failure, json, number, text};
use support::group::Group;
use support::place::Place;
use support::sees_locks;
use support::server::Server;

/// A profile that is being taken.
struct Watch(Child, BufReader<ChildStderr>);

impl Watch {
    /// Starts it; it watches when this returns.
    fn start(place: &Place, arguments: &str) -> Self {
        let mut command = place.command(&format!("profile {arguments} --json"));
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("text");
        assert!(line.starts_with("scalevm: watching "), "{line}");
        sleep(Duration::from_millis(400));
        Watch(child, stderr)
    }

    fn interrupt(&self) {
        // SAFETY: sends a signal to a child that this test has not waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, libc::SIGINT) }, 0);
    }

    /// Waits for its end with the exit code `code`; the profile.
    fn end(self, code: i32) -> Value {
        let Watch(child, mut stderr) = self;
        // Both pipes are emptied: neither may fill up and hold the command.
        let errors = std::thread::spawn(move || {
            let mut errors = String::new();
            stderr.read_to_string(&mut errors).expect("text");
            errors
        });
        let output = child.wait_with_output().expect("it ends");
        let errors = errors.join().expect("read");
        assert_eq!(output.status.code(), Some(code), "{errors}");
        json(&text(&output.stdout)).remove(0)
    }
}

/// Seconds of stacks that contain `frame`.
fn seconds(profile: &Value, kind: &str, frame: &str) -> f64 {
    let stacks = profile[kind].as_object().expect("stacks").iter();
    let right = stacks.filter(|(stack, _)| stack.contains(frame));
    right.map(|(_, seconds)| number(seconds)).sum()
}

/// Asserts that the profile has waits for the server's lock.
fn assert_lock(profile: &Value) {
    let rows = profile["locks"].as_array().expect("locks");
    let is_planted = |row: &&Value| {
        row["name"] == "pthread_mutex planted_mutex"
            && row["caller"].to_string().contains("planted_contention")
    };
    let row = rows.iter().find(is_planted);
    let row = row.unwrap_or_else(|| panic!("no row: {}", profile["locks"]));
    assert!(number(&row["wait"]) > 0.1, "{row}");
}

#[test]
fn a_program_that_runs_is_watched_and_left_alone() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("attached");
    let mut server = Server::new(&place);
    let pid = server.pid();
    let watch = Watch::start(&place, &format!("--pid {pid} --duration 1.5"));
    server.fork();
    let profile = watch.end(0);
    assert_lock(&profile);
    let sentence = profile["bottleneck"].as_str().expect("a sentence");
    let lock = "waits for pthread_mutex planted_mutex, taken in planted_contention";
    assert!(sentence.contains(lock), "{sentence}");
    assert_eq!(profile["workload"], format!("process {pid} (server)"));
    assert!(profile["rate"].is_null() && profile["machine"]["load_before"].is_null());
    assert!(seconds(&profile, "busy", "planted_child") > 0.02);
    // Three threads; the one that waits for orders sleeps when the recording begins.
    let lived = number(&profile["lived"]);
    let span = number(&profile["seconds"]);
    assert!(
        (2.9 * span..4.0 * span).contains(&lived),
        "{lived} of {span}"
    );
    let seen = seconds(&profile, "busy", "") + seconds(&profile, "waits", "");
    assert!(
        (0.9 * lived..1.05 * lived).contains(&seen),
        "{seen} of {lived}"
    );
    server.end();
}

#[test]
fn watching_ends_by_ctrl_c_or_with_what_is_watched() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("attached-end");
    let server = Server::new(&place);
    let pid = server.pid();
    let watch = Watch::start(&place, &format!("--pid {pid}"));
    watch.interrupt();
    assert_lock(&watch.end(0));
    let watch = Watch::start(&place, &format!("--pid {pid} --duration 600"));
    watch.interrupt();
    assert_lock(&watch.end(130));
    let watch = Watch::start(&place, &format!("--pid {pid}"));
    server.end();
    assert_lock(&watch.end(0));
}

#[test]
fn a_control_group_is_watched_with_what_joins_it() {
    if !sees_locks() {
        return;
    }
    let Some(group) = Group::new("joined") else {
        return;
    };
    let place = Place::new("attached-group");
    let name = group.name();
    let error = failure(&format!("profile --cgroup {name} --json"), 2);
    let expected = format!("scalevm: cgroup {name}: it has no process to watch\n");
    assert_eq!(error, expected);
    let mut idle = Command::new("sleep").arg("600").spawn().expect("sleep");
    group.take(idle.id());
    let server = Server::new(&place);
    let watch = Watch::start(&place, &format!("--cgroup /{name} --duration 1.5"));
    group.take(server.pid());
    let profile = watch.end(0);
    assert_eq!(profile["workload"], format!("cgroup {name}"));
    assert_lock(&profile);
    assert!(seconds(&profile, "waits", "idle;sleep;") > 1.0);
    server.end();
    idle.kill().and_then(|()| idle.wait()).expect("it ends");
}

#[test]
fn a_group_is_found_by_its_name_and_by_its_containers() {
    if !sees_locks() {
        return;
    }
    let Some(group) = Group::new("container") else {
        return;
    };
    let place = Place::new("attached-container");
    let name = group.name();
    let last = name.rsplit('/').next().expect("a name");
    let server = Server::new(&place);
    group.take(server.pid());
    let profile = Watch::start(&place, &format!("--cgroup {last} --duration 0.5")).end(0);
    assert_eq!(profile["workload"], format!("cgroup {name}"));
    // A program that knows the container `web` by the group's name.
    let known = format!("#!/bin/sh\n[ \"$5\" = web ] && echo {last}\n");
    let docker = place.source("docker", &known);
    fs::set_permissions(&docker, fs::Permissions::from_mode(0o755)).expect("it may run");
    let (directory, _) = docker.rsplit_once('/').expect("a path");
    let path = format!("{directory}:/usr/bin:/bin");
    let profiled = |name: &str| {
        let mut command = place.command(&format!("profile --cgroup {name} --duration 0.5 --json"));
        command.env("PATH", &path).output().expect("it starts")
    };
    let web = profiled("web");
    assert!(web.status.success(), "{}", text(&web.stderr));
    assert_eq!(
        json(&text(&web.stdout))[0]["workload"],
        format!("cgroup {name}")
    );
    let other = profiled("shop");
    assert_eq!(other.status.code(), Some(2));
    let said = "scalevm: cgroup shop: no such control group\n";
    assert!(
        text(&other.stderr).ends_with(said),
        "{}",
        text(&other.stderr)
    );
    server.end();
}

#[test]
fn all_processes_are_watched() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("attached-all");
    let server = Server::new(&place);
    let watch = Watch::start(&place, "--all --duration 1");
    let profile = watch.end(0);
    assert_eq!(profile["workload"], "all processes");
    assert_lock(&profile);
    assert!(seconds(&profile, "waits", "kthreadd;") > 0.0);
    server.end();
}

#[test]
fn a_program_in_other_mounts_has_its_names() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("attached-mounts");
    let program = Server::program(&place);
    let inside = "mount --bind \"$(dirname \"$1\")\" /mnt && exec /mnt/server";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", inside, "sh", &program]);
    let server = Server::start(&mut command);
    let watch = Watch::start(&place, &format!("--pid {} --duration 1", server.pid()));
    assert_lock(&watch.end(0));
    server.end();
}

#[test]
fn a_program_that_sleeps_is_said_to_sleep() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("attached-idle");
    let mut idle = Command::new("sleep").arg("600").spawn().expect("sleep");
    let watch = Watch::start(&place, &format!("--pid {} --duration 0.6", idle.id()));
    let profile = watch.end(0);
    idle.kill().and_then(|()| idle.wait()).expect("it ends");
    let sentence = profile["bottleneck"].as_str().expect("a sentence");
    assert!(
        sentence.starts_with("no thread ran; 100 % of task time is idle, 100 % in "),
        "{sentence}"
    );
}

#[test]
fn profiles_without_a_rate_are_written_compared_and_shown() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("attached-files");
    let server = Server::new(&place);
    let pid = server.pid();
    let (out, store) = (place.file("out"), place.file("store"));
    let line = format!("profile --pid {pid} --duration 0.5 -o {out} --store {store}");
    let (printed, _) = support::command::exits(0, &mut place.command(&line));
    server.end();
    let heading = format!("process {pid} (server), watched for 0.5 s\nof ");
    assert!(
        printed.starts_with(&heading) && !printed.contains("a second"),
        "{printed}"
    );
    let svg = fs::read_to_string(format!("{out}/waits.svg")).expect("a picture");
    assert!(svg.contains("planted_contention"));
    let compare = format!("profile --diff {out} {out} --json");
    let difference = &json(&place.success(&compare, &[]))[0];
    assert!(difference["rate_before"].is_null(), "{difference}");
    assert_eq!(
        (&difference["sentence"], &difference["unlike"]),
        (
            &"no lock's share of task time changed".into(),
            &serde_json::json!([])
        )
    );
    let page = place.file("page.html");
    place.success(&format!("report {out}/profile.jsonl -o {page}"), &[]);
    let page = fs::read_to_string(page).expect("a page");
    assert!(
        page.contains(&format!("process {pid} (server): ")),
        "{page}"
    );
    let error = place.failure(&format!("history {store}"), &[], 2);
    assert!(error.contains("no "), "{error}");
}

#[test]
fn what_only_a_workload_has_is_refused() {
    let own = std::process::id();
    for option in "-t=2 --vm=scalevm -s=1 --warmup=1 --threads --processes --on=os -m \
                   --no-affinity --hosted-cpus=2 --machine=arm64-16 --seeds=2 --disturb --label=x"
        .split_whitespace()
    {
        let error = failure(&format!("profile --pid {own} {option}"), 2);
        assert!(
            error.ends_with("not to processes that already run\n") && error.lines().count() == 1,
            "{option}: {error}"
        );
    }
    for other in [
        "mmap1",
        "--all",
        "--cgroup x",
        "--command true",
        "--diff a b",
    ] {
        let error = failure(&format!("profile --pid {own} {other}"), 2);
        assert!(error.contains("cannot be used with"), "{other}: {error}");
    }
}

#[test]
fn what_can_not_be_watched_is_named() {
    let gone = 1 << 30;
    let cases = [
        (
            format!("--pid {gone}"),
            format!("process {gone}: no such process"),
        ),
        (
            "--cgroup no/such".into(),
            "cgroup no/such: no such control group".into(),
        ),
    ];
    for (what, why) in cases {
        let error = failure(&format!("profile {what} --json"), 2);
        assert_eq!(error, format!("scalevm: {why}\n"));
    }
}

#[test]
fn without_rights_ones_own_processes_are_watched_and_others_refused() {
    const NOBODY: u32 = 65534;
    // SAFETY: the call takes no arguments.
    if unsafe { libc::geteuid() } != 0 || !sees_locks() {
        eprintln!("skipped: only root can become nobody");
        return;
    }
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("a level");
    if level.trim() != "2" {
        eprintln!("skipped: the kernel allows everybody more or less than usual");
        return;
    }
    // A place where the user nobody can read and run the programs.
    let place = Place::new("attached-nobody");
    let folder = std::env::temp_dir().join(format!("scalevm-nobody-{}", std::process::id()));
    fs::create_dir(&folder).expect("a folder");
    let copy = |from: &str, name: &str| {
        let to = folder.join(name);
        fs::copy(from, &to).expect("a copy");
        to
    };
    let command = copy(env!("CARGO_BIN_EXE_scalevm"), "scalevm");
    let program = copy(&Server::program(&place), "server");
    let mut server = Server::start(Command::new(program).uid(NOBODY).gid(NOBODY));
    let watch = |pid: u32| {
        let words = format!("profile --pid {pid} --duration 1 --json");
        let mut command = Command::new(&command);
        command
            .args(words.split(' '))
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/");
        command
    };
    let mut child = watch(server.pid());
    let child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    sleep(Duration::from_millis(600));
    server.fork();
    let output = child.wait_with_output().expect("ends");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("run as root, or"), "{errors}");
    let profile = &json(&text(&output.stdout))[0];
    assert!(seconds(profile, "busy", "planted_child") > 0.0, "{profile}");
    let sentence = profile["bottleneck"].to_string();
    assert!(
        sentence.contains("not known: the kernel and waits cannot be seen"),
        "{sentence}"
    );
    let output = watch(std::process::id()).output().expect("ends");
    let last = text(&output.stderr).lines().last().map(str::to_owned);
    let last = last.expect("a line");
    let expected = format!("scalevm: process {}: other users'", std::process::id());
    assert!(
        last.starts_with(&expected) && last.contains("run as root"),
        "{last}"
    );
    assert_eq!(output.status.code(), Some(2));
    server.end();
    fs::remove_dir_all(folder).expect("removed");
}
