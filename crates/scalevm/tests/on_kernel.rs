//! `--on kernel`: workloads as programs on scalevm's kernel, in real guests.

#[path = "../../recording/tests/support/mod.rs"]
mod recorded;
mod support;

use recorded::Program;
use recording::{Advice, Call, Recording, What};
use std::fs;
use support::command::{json, number};
use support::place::{MODES, Place, QUICK};

/// Counts on scalevm's kernel, and ends the process on another one, when it has printed a line.
const OURS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

char *testcase_description = "Counting on our kernel";

static unsigned long all;

static int is_ours(void)
{
    struct utsname name;
    return uname(&name) == 0 && strstr(name.release, "-scalevm") != NULL;
}

void testcase_prepare(unsigned long tasks)
{
    all = tasks;
    puts("prepared");
}

void testcase(unsigned long long *iterations, unsigned long task)
{
    if (!is_ours() || task >= all)
        abort();
    for (;;) {
        getppid();
        ++*(volatile unsigned long long *)iterations;
    }
}
"#;

const RETURNS: &str = r#"
void testcase(unsigned long long *iterations, unsigned long task) { *iterations += task; }
"#;

const DIES: &str = r#"
#include <signal.h>

void testcase(unsigned long long *iterations, unsigned long task)
{
    while (task == 0)
        ++*(volatile unsigned long long *)iterations;
    raise(SIGKILL);
}
"#;

#[test]
fn results_are_lines_like_all_others() {
    let place = Place::new("results-are-lines-like");
    let lines = place.success(
        "run mmap1 -t 2 --threads --on kernel --vm freebsd-di -s 2 --duration 0.1 --warmup 0 \
         --json",
        &[],
    );
    let lines = json(&lines);
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds, ["sample", "sample", "summary"].map(Some));
    for line in lines {
        assert_eq!(
            (&line["on"], &line["vm"]),
            (&"kernel".into(), &"freebsd-di".into())
        );
        assert!(number(&line["min"]) > 0.0, "{line}");
        let seconds = number(&line["seconds"]);
        let samples = if line["kind"] == "summary" { 2.0 } else { 1.0 };
        assert!((0.05 * samples..1.0).contains(&seconds), "{line}");
    }
}

#[test]
fn a_c_file_runs_unchanged_on_our_kernel() {
    let place = Place::new("a-c-file-runs-unchanged");
    let file = place.source("ours.c", OURS);
    for mode in MODES {
        let output = place.run(&format!("run {file} -t 3 {mode} --on kernel {QUICK}"), &[]);
        let (text, notes) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{text}{notes}");
        assert!(
            text.starts_with("testcase:Counting on our kernel\n"),
            "{text}"
        );
        assert!(notes.lines().any(|line| line == "prepared"), "{notes}");
    }
    let elsewhere = place.failure(&format!("run {file} --on os {QUICK}"), &[], 4);
    assert!(elsewhere.contains("signal: 6"), "{elsewhere}");
}

#[test]
fn a_recorded_program_runs_on_our_kernel() {
    let place = Place::new("a-recorded-program");
    let file = place.file("program.vmrec");
    let to = fs::File::create(&file).expect("a file");
    recorded::everything().write(to).expect("written");
    let lines = place.success(
        &format!("run {file} -t 2 --on kernel --count 20 -s 1 --json"),
        &[],
    );
    let line = &json(&lines)[0];
    assert_eq!(
        (&line["workload"], &line["on"]),
        (&"program".into(), &"kernel".into())
    );
    assert!(number(&line["real"]) > 0.0, "{line}");
    let lines = place.success(
        &format!("run {file} -t 3 --threads --on kernel -s 1 --warmup 0 --duration 1 --json"),
        &[],
    );
    let line = &json(&lines)[0];
    assert_eq!(
        (&line["tasks"], &line["mode"]),
        (&3.into(), &"threads".into())
    );
    assert!(number(&line["total"]) > 0.0, "{line}");
}

/// Two threads that map 64 pages each, touch them, give half of them up, touch those again, and
/// unmap them all, 20 times; and the numbers of calls and faults.
fn mapper() -> (Recording, u64, u64) {
    const ROUNDS: u32 = 20;
    let mut program = Program::new();
    let other = program.thread_of(0);
    program.add(0, What::Start { thread: other });
    for round in 0..ROUNDS {
        for thread in [0, other] {
            let mapping = 1 + 2 * round + thread;
            let (at, length) = (recorded::at(mapping, 0), 32 * recorded::PAGE);
            let advice = Advice::Discard;
            program.map(thread, mapping, 64);
            program.fault(thread, mapping, 0, 64);
            program.call(thread, Call::Advise { at, length, advice });
            program.fault(thread, mapping, 0, 32);
            program.unmap(thread, mapping, 0, 64);
        }
    }
    let threads = 2 * u64::from(ROUNDS);
    (program.0, 3 * threads, 96 * threads)
}

/// Two more runs of a program make its calls and take its faults twice, here and there; beyond
/// these are only the faults of two new processes.
#[test]
fn a_replay_takes_the_recorded_calls_and_faults_on_each_kernel() {
    let place = Place::new("a-replay-takes");
    let file = place.file("mapper.vmrec");
    let (recording, calls, faults) = mapper();
    let to = fs::File::create(&file).expect("a file");
    recording.write(to).expect("written");
    for on in ["os", "kernel", "kernel --vm linux-6.12"] {
        let [few, many] = [1, 3].map(|runs| {
            let line = format!("run {file} --on {on} --count {runs} -s 1 --json");
            let line = json(&place.success(&line, &[]))[0].clone();
            assert_eq!(line["count"], runs * calls, "{line}");
            line["faults"].as_u64().expect("a number")
        });
        let taken = (many - few) / 2;
        let most = faults + faults / 10;
        assert!(
            (faults..most).contains(&taken),
            "{on}: {taken} faults, not {faults}"
        );
    }
}

#[test]
fn a_curve_has_a_guest_for_each_point() {
    let place = Place::new("a-curve-has-a-guest");
    let lines = place.success(
        &format!("sweep mmap1 --on kernel --cpus 1,2 {QUICK} --json"),
        &[],
    );
    let lines = json(&lines);
    let summaries = lines.iter().filter(|line| line["kind"] == "summary");
    let tasks: Vec<_> = summaries.map(|line| line["tasks"].as_u64()).collect();
    assert_eq!(tasks, [Some(1), Some(2)]);
}

#[test]
fn a_run_with_an_end_tells_its_times() {
    let place = Place::new("a-run-with-an-end");
    for workload in ["mmap1", "unix1"] {
        let run = format!("run {workload} -t 2 --on kernel --count 1000 -s 1 --json");
        let lines = place.success(&run, &[]);
        let line = &json(&lines)[0];
        assert_eq!(line["on"], "kernel");
        assert!(number(&line["real"]) > 0.0, "{line}");
    }
}

/// Maps a page, writes it and gives it up, then works by itself.
const WORKS: &str = r#"
#include <sys/mman.h>

__attribute__((noinline)) static void planted_work(void)
{
    for (volatile int work = 0; work < 200000; work++)
        ;
}

void testcase(unsigned long long *iterations, unsigned long task)
{
    for (;;) {
        char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *(volatile char *)page = 1;
        munmap(page, 4096);
        planted_work();
        (*iterations)++;
    }
}
"#;

#[test]
fn a_profile_sees_the_kernel_and_the_program() {
    let place = Place::new("a-profile-sees-the-kernel");
    let file = place.source("works.c", WORKS);
    let lines = place.success(
        &format!(
            "profile {file} -t 2 --threads --on kernel --vm linux-2.6.39 --samples 2 \
                  --duration 0.3 --warmup 0 --json"
        ),
        &[],
    );
    let profile = &json(&lines)[0];
    assert_eq!(
        (&profile["kind"], &profile["on"]),
        (&"profile".into(), &"kernel".into())
    );
    assert!(number(&profile["rate"]) > 0.0, "{profile}");
    let busy = profile["busy"].as_object().expect("stacks");
    let seconds = |part: &str| {
        let stacks = busy.iter().filter(|(stack, _)| stack.contains(part));
        stacks.map(|(_, seconds)| number(seconds)).sum::<f64>()
    };
    let all = seconds("");
    assert!(all > 0.3, "{profile}");
    for part in [
        "works;planted_work",
        "works;kernel::abi::",
        "vm::space::unmap::",
    ] {
        assert!(seconds(part) > 0.0, "{part}: {profile}");
    }
    let locks = profile["locks"].as_array().expect("locks");
    let waits = locks.iter().find(|lock| {
        lock["caller"]
            .as_str()
            .is_some_and(|at| at.starts_with("vm/"))
    });
    assert!(waits.is_some(), "{profile}");
}

#[test]
fn what_fails_in_a_guest_is_told() {
    let place = Place::new("what-fails-in-a-guest");
    // Of two tasks that return, either may be the first.
    for (text, tasks, why) in [
        (
            RETURNS,
            1,
            "fails: task 0: testcase returned; it must run until it is killed",
        ),
        (DIES, 2, "fails: task 1 ended on its own: signal 9"),
    ] {
        let file = place.source("fails.c", text);
        let said = place.failure(
            &format!("run {file} -t {tasks} --on kernel {QUICK}"),
            &[],
            4,
        );
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn what_the_kernel_cannot_do_is_refused_in_a_line() {
    let place = Place::new("what-the-kernel-cannot");
    let source = place.source("ours.c", OURS);
    let object = place.object(&source, "ours.so");
    for (arguments, why) in [
        (
            format!("run {object} --on kernel {QUICK}"),
            "only C files can be run on kernel",
        ),
        (
            "run --command true --on kernel".to_owned(),
            "can run only on a kernel",
        ),
        (
            "profile mmap1 --on kernel --ring 64 --json".to_owned(),
            "cannot see into a guest",
        ),
        (
            "latency --on kernel".to_owned(),
            "latency cannot be measured on kernel",
        ),
    ] {
        let said = place.failure(&arguments, &[], 2);
        assert!(said.contains(why), "{arguments}: {said}");
    }
}
