//! `record`: commands and running programs, ended by themselves, by the user or by time.

mod support;

use recording::{Call, End, Event, Recording, What};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::command::{exits, failure};
use support::group::Group;
use support::place::Place;
use support::sees_locks;

/// The recording in a file, whole and without losses.
fn read(file: &str) -> Recording {
    let (recording, end) = Recording::open(Path::new(file)).expect("a recording");
    assert_eq!((end, recording.lost.records), (End::Whole, 0));
    recording
}

#[test]
fn a_command_is_recorded_from_its_start_to_its_end() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("record-command");
    let folder = place.file("tmp");
    let mut command = place.command("record --anonymous --");
    command
        .args(["sh", "-c", "true | cat; exit 3"])
        .current_dir(&folder);
    let (stdout, stderr) = exits(4, &mut command);
    assert_eq!(stdout, "");
    let file = place.file("tmp/sh.vmrec");
    let recording = read(&file);
    std::fs::remove_file(&file).expect("removed");
    let line = stderr
        .lines()
        .find(|line| line.starts_with("scalevm: sh.vmrec: "));
    let line = line.unwrap_or_else(|| panic!("{stderr}"));
    for part in [
        &format!("of {} threads in ", recording.threads.len()),
        " bytes each; nothing lost; recording costs ",
        " % of a loop of memory calls",
    ] {
        assert!(line.contains(part), "no {part}: {line}");
    }
    assert!(
        stderr.ends_with("sh -c true | cat; exit 3: exit status: 3\n"),
        "{stderr}"
    );
    let names: Vec<&str> = recording
        .processes
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert!(names.contains(&"sh") && names.contains(&"cat"), "{names:?}");
    assert!(recording.files.len() > 2 && recording.files.iter().all(|one| one.name.is_empty()));
}

#[test]
fn a_program_that_runs_is_recorded_until_the_user_ends_it() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("record-attached");
    let mut sleeper = Command::new("sleep").arg("1000").spawn().expect("it runs");
    let file = place.file("sleep.vmrec");
    let arguments = format!("record --pid {} -o {file}", sleeper.id());
    let mut recorder = place.command(&arguments);
    let mut recorder = recorder.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stderr = BufReader::new(recorder.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("text");
    assert_eq!(line, "scalevm: recording until Ctrl-C\n");
    sleep(Duration::from_millis(200));
    // SAFETY: sends a signal to a child that this test has not waited for.
    assert_eq!(unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) }, 0);
    assert!(recorder.wait().expect("it ends").success());
    stderr.read_to_string(&mut line).expect("text");
    assert!(
        sleeper.try_wait().expect("asked").is_none(),
        "it was left alone"
    );
    sleeper
        .kill()
        .and_then(|()| sleeper.wait())
        .expect("it ends");
    let recording = read(&file);
    assert_eq!(recording.threads.len(), 1);
    assert_eq!(recording.processes[0].name, "sleep");
    // Its memory was there before.
    assert!(recording.events.len() > 5, "{line}");
}

#[test]
fn a_control_group_is_recorded_with_what_joins_it() {
    if !sees_locks() {
        return;
    }
    let Some(group) = Group::new("recorded") else {
        return;
    };
    let place = Place::new("record-group");
    let file = place.file("group.vmrec");
    let mut sleeper = Command::new("sleep").arg("1000").spawn().expect("it runs");
    group.take(sleeper.id());
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", "read line; true | cat; read line"]);
    let mut shell = shell.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut stdin = shell.stdin.take().expect("a pipe");
    let arguments = format!("record --cgroup {} -o {file}", group.name());
    let mut recorder = place.command(&arguments);
    let mut recorder = recorder.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stderr = BufReader::new(recorder.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("text");
    assert_eq!(line, "scalevm: recording until Ctrl-C\n");
    group.take(shell.id());
    sleep(Duration::from_millis(500));
    stdin.write_all(b"\n").expect("it reads");
    sleep(Duration::from_millis(500));
    // SAFETY: sends a signal to a child that this test has not waited for.
    assert_eq!(unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) }, 0);
    assert!(recorder.wait().expect("it ends").success());
    drop(stdin);
    shell.wait().expect("it ends");
    sleeper
        .kill()
        .and_then(|()| sleeper.wait())
        .expect("it ends");
    let recording = read(&file);
    let names: Vec<&str> = recording
        .processes
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    for name in ["sleep", "sh", "cat"] {
        assert!(names.contains(&name), "no {name}: {names:?}");
    }
}

#[test]
fn time_ends_a_command() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("record-time");
    let file = place.file("sleep.vmrec");
    let begun = Instant::now();
    let arguments = format!("record --duration 0.5 -o {file} -- sleep 1000");
    let (_, stderr) = exits(0, &mut place.command(&arguments));
    assert!(begun.elapsed() < Duration::from_secs(100), "{stderr}");
    let recording = read(&file);
    assert!(recording.nanoseconds > 400_000_000, "{stderr}");
    assert_eq!(recording.processes[0].name, "sleep");
}

#[test]
fn what_cannot_be_recorded_is_refused_in_a_line() {
    let missing = failure("record", 2);
    assert!(missing.contains("<COMMAND>"), "{missing}");
    let both = failure("record --all -- true", 2);
    assert!(both.contains("cannot be used with"), "{both}");
    let nowhere = failure("record -o /dev/null/x -- true", 2);
    assert_eq!(nowhere.lines().count(), 1, "{nowhere}");
    if sees_locks() {
        let place = Place::new("record-refused");
        let arguments = format!("record -o {} -- ./no-such-program", place.file("x.vmrec"));
        let unknown = failure(&arguments, 2);
        assert!(
            unknown.starts_with("scalevm: ./no-such-program: "),
            "{unknown}"
        );
        assert_eq!(unknown.lines().count(), 1, "{unknown}");
        assert!(
            !Path::new(&place.file("x.vmrec")).exists(),
            "no file is left"
        );
    }
}

/// Computes for two seconds with a frame pointer that leads to a page it has not touched, when it
/// has been told to; then maps.
const FRAMELESS: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

static char *map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void)
{
    char *untouched = map(4096);
    struct timespec used = {0};
    getchar();
    while (used.tv_sec < 2) {
        char *frame = untouched + 64;
        long count = 10000000;
        __asm__ volatile("lea -128(%%rsp), %%rsp; push %%rbp; mov %1, %%rbp; 1: dec %0; jnz 1b; "
                         "pop %%rbp; lea 128(%%rsp), %%rsp"
                         : "+a"(count), "+b"(frame)::"cc", "memory");
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    }
    map(77 * 4096);
    return 0;
}
"#;

/// A profiler that follows frames faults in interrupts. These faults are not the program's, nor do
/// they end its computing.
#[test]
fn a_profile_of_the_program_does_not_show() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("record-profiled");
    let (source, program) = (
        place.source("frameless.c", FRAMELESS),
        place.file("frameless"),
    );
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-O1", &source, "-o", &program]).status();
    assert!(compiled.expect("a compiler").success());
    let mut program = Command::new(program);
    let mut program = program.stdin(Stdio::piped()).spawn().expect("it runs");
    let file = place.file("frameless.vmrec");
    let pid = program.id();
    let mut recorder = place.command(&format!("record --pid {pid} -o {file}"));
    let mut recorder = recorder.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stderr = BufReader::new(recorder.stderr.take().expect("a pipe"));
    stderr.read_line(&mut String::new()).expect("text");
    let mut profiler = place.command(&format!("profile --pid {pid} --duration 1 --json"));
    let profiler = profiler.stdout(Stdio::piped()).stderr(Stdio::null());
    let profiler = profiler.spawn().expect("it starts");
    drop(program.stdin.take());
    let profiled = profiler.wait_with_output().expect("it ends");
    assert!(profiled.status.success());
    assert!(program.wait().expect("it ends").success());
    assert!(recorder.wait().expect("it ends").success());
    let recording = read(&file);
    let before = recording.events.iter().rev().skip_while(|event| {
        let is_last =
            |call: &Call| matches!(call, Call::Map { length, .. } if *length == 77 * 4096);
        !matches!(&event.what, What::Call { call, .. } if is_last(call))
    });
    let computed: u64 = before.map(|event| event.computed).sum();
    assert!(
        computed > 1_900_000_000,
        "computed for {computed} ns of 2 s"
    );
    assert_eq!(recording.lost.unknown, 0);
}

/// Two threads that map, touch and unmap, and a child that writes to what it inherits.
const CHURN: &str = r#"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *churn(void *none)
{
    for (int round = 0; round < 2000; round++) {
        char *memory = map(4 * 4096);
        memset(memory, 1, 4 * 4096);
        mprotect(memory, 4096, PROT_READ);
        munmap(memory, 4 * 4096);
    }
    return none;
}

int main(void)
{
    char *inherited = memset(map(1000 * 4096), 1, 1000 * 4096);
    pid_t child = fork();
    if (child == 0) {
        memset(inherited, 2, 1000 * 4096);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
"#;

/// The calls of this name, and with "fault" the faults, of all processes but the first ones.
fn count(recording: &Recording, name: &str, first: u32) -> u64 {
    let of = |event: &Event| match &event.what {
        _ if recording.threads[event.thread as usize].process < first => 0,
        What::Call { call, error: 0, .. } => u64::from(call.name() == name),
        What::Fault { pages, .. } if name == "fault" => u64::from(*pages),
        _ => 0,
    };
    recording.events.iter().map(of).sum()
}

#[test]
fn a_replay_does_what_the_program_did() {
    /// The processes that run the replay: the command, and its task.
    const RUNNERS: u32 = 2;
    /// Calls and faults of starting threads, at most.
    const OTHERS: u64 = 300;
    if !sees_locks() {
        return;
    }
    let place = Place::new("record-replay");
    let (source, program) = (place.source("churn.c", CHURN), place.file("churn"));
    let compiled = Command::new("cc")
        .args(["-O1", "-pthread", &source, "-o", &program])
        .status();
    assert!(compiled.expect("a compiler").success());
    let [first, second] = ["first.vmrec", "second.vmrec"].map(|name| place.file(name));
    exits(
        0,
        &mut place.command(&format!("record -o {first} -- {program}")),
    );
    let scalevm = env!("CARGO_BIN_EXE_scalevm");
    let replay = format!("{scalevm} run {first} --count 1 -s 1 --on os");
    exits(
        0,
        &mut place.command(&format!("record -o {second} -- {replay}")),
    );
    let [first, second] = [first, second].map(|file| read(&file));
    assert_eq!(
        count(&first, "mprotect", 0) / 1000,
        4,
        "two threads' calls, and some"
    );
    for name in ["mmap", "munmap", "mprotect", "fault"] {
        let one = count(&first, name, 0);
        let other = count(&second, name, RUNNERS);
        assert!(
            (one..one + OTHERS).contains(&other),
            "{name}: {one}, in the replay {other}"
        );
    }
}
