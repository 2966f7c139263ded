//! What `top` shows of programs whose locks, waiters and holders are known.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;
use support::command::{exits, failure, json, number, scalevm, text};
use support::place::Place;
use support::sees_locks;
use support::server::Server;
use support::terminal::Terminal;

/// One thread holds a lock for as long as the program runs, and another waits for it.
const HOLDS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

pthread_mutex_t held_for_ever = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *nothing)
{
    pthread_mutex_lock(&held_for_ever);
    return nothing;
}

int main(void)
{
    pthread_t thread;
    char order;
    pthread_mutex_lock(&held_for_ever);
    pthread_create(&thread, 0, waits, 0);
    usleep(200000);
    puts("ready");
    fflush(stdout);
    read(0, &order, 1);
    puts("unharmed");
    fflush(stdout);
    _exit(0);
}
"#;

/// Maps and unmaps next to mappings with many pages, until stdin ends.
const MAPS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void *maps(void *nothing)
{
    for (;;) {
        munmap(mmap(0, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 16);
        usleep(100);
    }
    return nothing;
}

int main(void)
{
    pthread_t thread;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS, size = 8 << 20;
    char order;
    for (int i = 0; i < 32; i++) {
        /* Neighbours with the same rights would become one mapping. */
        char *p = mmap(0, size, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, flags, -1, 0);
        madvise(p, size, MADV_NOHUGEPAGE);
        for (int at = 0; at < size; at += 4096)
            *(volatile char *)(p + at);
    }
    pthread_create(&thread, 0, maps, 0);
    puts("ready");
    fflush(stdout);
    read(0, &order, 1);
    puts("unharmed");
    fflush(stdout);
    _exit(0);
}
"#;

/// The intervals that `top` prints.
fn intervals(arguments: &str) -> Vec<Value> {
    json(&exits(0, &mut scalevm(&format!("top {arguments} --json"))).0)
}

/// The row of the lock `name`.
fn row<'a>(interval: &'a Value, name: &str) -> Option<&'a Value> {
    let mut rows = interval["locks"].as_array().expect("locks").iter();
    rows.find(|row| row["name"] == name)
}

/// Threads that waited for the lock `name` at a time.
fn waiting(interval: &Value, name: &str) -> f64 {
    row(interval, name).map_or(0.0, |row| number(&row["wait"])) / number(&interval["seconds"])
}

#[test]
fn a_lock_has_its_waiters_and_its_share() {
    const LOCK: &str = "pthread_mutex planted_mutex";
    if !sees_locks() {
        return;
    }
    let place = Place::new("top");
    let server = Server::new(&place);
    let all = intervals(&format!("--pid {} --interval 0.5 --count 4", server.pid()));
    assert_eq!(all.len(), 4);
    for interval in &all {
        assert_eq!(interval["kind"], "interval");
        let seconds = number(&interval["seconds"]);
        assert!((0.4..0.7).contains(&seconds), "{seconds}");
        // One of two threads always waits; the other and the third do nothing.
        let row = row(interval, LOCK).unwrap_or_else(|| panic!("no row: {interval}"));
        let waiting = waiting(interval, LOCK);
        assert!((0.8..1.05).contains(&waiting), "{waiting}: {row}");
        let share = number(&row["share"]);
        assert!((0.8..1.02).contains(&share), "{share}: {row}");
        assert!(row["caller"].to_string().contains("planted_contention"));
        let (mean, p99) = (number(&row["mean"]), number(&row["spread"]["p99"]));
        assert!(mean > 2e-4 && mean <= number(&row["worst"]), "{row}");
        assert!(p99 >= mean / 2.0 && p99 <= number(&row["worst"]), "{row}");
        // Each thread waits for half of the time, and sleeps for the other half.
        let threads = interval["threads"].as_array().expect("threads");
        let held_up = threads
            .iter()
            .flat_map(|thread| thread["waits"].as_array())
            .flatten();
        let held_up = held_up.filter(|wait| wait["what"] == LOCK && wait["idle"] == false);
        let held_up: f64 = held_up.map(|wait| number(&wait["seconds"])).sum();
        assert!((0.8..1.05).contains(&(held_up / seconds)), "{interval}");
        assert_eq!(threads.len(), 3);
    }
    server.end();
}

#[test]
fn a_long_wait_counts_in_each_interval_for_its_part() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("top-long");
    let program = Server::built(&place, "server", HOLDS);
    let mut server = Command::new("sh");
    // The watched process starts the program while it is watched: so the wait is seen to begin.
    server.args(["-c", "echo ready; read order; exec \"$0\"", &program]);
    let mut server = Server::start(&mut server);
    let mut command = scalevm(&format!(
        "top --pid {} --interval 0.5 --count 5 --json",
        server.pid()
    ));
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().expect("the command starts");
    sleep(Duration::from_millis(400));
    server.order("\n");
    let output = child.wait_with_output().expect("it ends");
    let all = json(&text(&output.stdout));
    assert_eq!((output.status.code(), all.len()), (Some(0), 5));
    let name = "pthread_mutex held_for_ever";
    let mut before = 0.0;
    for interval in &all[3..] {
        let row = row(interval, name).unwrap_or_else(|| panic!("no row: {interval}"));
        let waiting = waiting(interval, name);
        assert!((0.97..1.03).contains(&waiting), "{waiting}: {row}");
        assert_eq!((&row["contentions"], &row["open"]), (&0.into(), &1.into()));
        // The whole wait so far.
        let mean = number(&row["mean"]);
        assert!(
            mean > before + 0.4 && mean == number(&row["worst"]),
            "{row}"
        );
        before = mean;
    }
    assert!(before > 0.8, "{before}");
}

#[test]
fn who_holds_a_lock_is_named() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("top-holder");
    let program = Server::built(&place, "server", MAPS);
    let server = Server::start(&mut Command::new(&program));
    let pid = server.pid();
    let stop = AtomicBool::new(false);
    let shown = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: the flag publishes nothing.
            while !stop.load(Ordering::Relaxed) {
                fs::read_to_string(format!("/proc/{pid}/smaps")).expect("it runs");
            }
        });
        // Loops of other tests may use up what recording holders may cost on a CPU.
        let line = format!("top --pid {pid} --interval 0.5 --count 4");
        let shown = (0..4).map(|_| exits(0, &mut scalevm(&line)).0);
        let found = shown.into_iter().find(|text| text.contains("smap"));
        stop.store(true, Ordering::Relaxed);
        found
    });
    let shown = shown.expect("one of four looks has the holder");
    let own = fs::read_to_string("/proc/self/comm").expect("a name");
    let holder = format!("({}/", own.trim_end());
    let parts = ["mmap_lock", &holder, ", not watched)"];
    let is_row = |line: &&str| parts.iter().all(|part| line.contains(part));
    assert!(shown.lines().any(|line| is_row(&line)), "{shown}");
    server.end();
}

#[test]
fn where_there_is_no_terminal_lines_are_plain() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("top-plain");
    let server = Server::new(&place);
    let line = format!("top --pid {} --interval 0.3 --count 2", server.pid());
    let (printed, told) = exits(0, &mut scalevm(&line));
    let acts = |letter: char| letter.is_control() && letter != '\n';
    assert!(!printed.contains(acts) && !told.contains(acts), "{printed}");
    let blocks: Vec<&str> = printed.matches("threads, ").collect();
    assert_eq!(blocks.len(), 2, "{printed}");
    let line = printed.lines().find(|line| line.contains("planted_mutex"));
    assert!(
        line.expect("a row").contains("planted_contention"),
        "{printed}"
    );
    assert!(told.ends_with("(server) for 2 intervals\n"), "{told}");
    // Without a name of what to watch, it is all.
    let (printed, told) = exits(0, &mut scalevm("top --interval 0.3 --count 1"));
    assert!(printed.starts_with("all processes: 0.3 s, "), "{printed}");
    assert!(
        told.contains("watching all processes for 1 interval"),
        "{told}"
    );
    // A busy computer may have more locks than the table has rows.
    let all = intervals("--interval 0.3 --count 1");
    assert!(row(&all[0], "pthread_mutex planted_mutex").is_some());
    server.end();
}

#[test]
fn on_a_terminal_keys_change_what_is_drawn() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("top-terminal");
    let server = Server::new(&place);
    let line = format!("top --pid {} --interval 0.2", server.pid());
    let mut terminal = Terminal::start(&mut scalevm(&line));
    terminal.shows("planted_mutex");
    let is_lock = |line: &&String| line.contains("planted_mutex");
    let screen = terminal.screen();
    let lock = screen.iter().find(is_lock).expect("a row");
    assert!(lock.contains("planted_contention"), "{screen:#?}");
    assert!(screen[29].starts_with("sorted by share: "), "{screen:#?}");
    assert!(!terminal.is_as_before(), "keys are read one by one");
    for (key, sorted) in [("n", "name"), ("w", "waits"), ("p", "p99"), ("s", "share")] {
        terminal.press(key);
        terminal.shows(&format!("sorted by {sorted}: "));
    }
    terminal.press("t");
    terminal.shows(" | t threads | ");
    // The rest of the screen follows its first line.
    terminal.press(" ");
    terminal.shows(", frozen");
    terminal.shows(" | space go on | ");
    let frozen = terminal.screen();
    sleep(Duration::from_millis(700));
    assert_eq!(terminal.screen(), frozen);
    terminal.press(" ");
    terminal.shows(" | space freeze | ");
    support::place::within_reason("another interval", || {
        let screen = terminal.screen();
        screen[0] != frozen[0] && screen.iter().find(is_lock) != frozen.iter().find(is_lock)
    });
    terminal.press("q");
    assert_left(terminal);
    // Ctrl-C is a key here.
    let mut terminal = Terminal::start(&mut scalevm(&line));
    terminal.shows("planted_mutex");
    terminal.press("\x03");
    assert_left(terminal);
    server.end();
}

/// Asserts that `top` ends well, and leaves the terminal as it was.
fn assert_left(terminal: Terminal) {
    let (status, written) = terminal.end();
    assert_eq!(status.code(), Some(0), "{written}");
    // The cursor, wrapped lines, and what the terminal showed before are back.
    assert!(
        written.ends_with("\x1b[?25h\x1b[?7h\x1b[?1049l"),
        "{written:?}"
    );
}

/// The values of a text of metrics.
fn metrics(text: &str) -> BTreeMap<String, f64> {
    let values = text.lines().filter(|line| !line.starts_with("# "));
    let split = |line: &str| {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        (series.to_owned(), value.parse().expect("a number"))
    };
    values.map(split).collect()
}

#[test]
fn metrics_are_replaced_after_each_interval_and_rise() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("top-metrics");
    let server = Server::new(&place);
    let file = place.file("scalevm.prom");
    let line = format!(
        "top --pid {} --interval 0.3 --prometheus {file}",
        server.pid()
    );
    let mut command = scalevm(&line);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().expect("the command starts");
    let mut seen: Vec<BTreeMap<String, f64>> = Vec::new();
    support::place::within_reason("four states of the file", || {
        let now = metrics(&fs::read_to_string(&file).unwrap_or_default());
        if !now.is_empty() && seen.last() != Some(&now) {
            seen.push(now);
        }
        seen.len() >= 4
    });
    // SAFETY: sends a signal to a child that this test has not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    for states in seen.windows(2) {
        for (series, value) in &states[0] {
            assert!(states[1][series] >= *value, "{series}");
        }
    }
    let (first, last) = (&seen[0], &seen[3]);
    let grown = |series: &str| last[series] - first[series];
    let wait = first.keys().find(|series| {
        series.starts_with("scalevm_lock_wait_seconds_total{lock=\"pthread_mutex planted_mutex\"")
    });
    let part = grown(wait.expect("the lock")) / grown("scalevm_watched_seconds_total");
    assert!((0.8..1.05).contains(&part), "{part}");
    server.end();
}

#[test]
fn watching_ends_with_what_is_watched_or_by_a_signal() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("top-end");
    let server = Server::new(&place);
    let start = |end: &str| {
        let line = format!("top --pid {} --interval 0.2 {end}", server.pid());
        let mut command = scalevm(&line);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().expect("the command starts");
        sleep(Duration::from_millis(600));
        child
    };
    for (end, code) in [("", 0), ("--count 1000", 130)] {
        let child = start(end);
        // SAFETY: sends a signal to a child that this test has not waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(code));
        assert!(text(&output.stdout).contains("planted_mutex"));
    }
    let child = start("");
    server.end();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_can_not_be_watched_or_written_is_named() {
    let gone = 1 << 30;
    for (what, why) in [
        (
            format!("--pid {gone}"),
            format!("process {gone}: no such process"),
        ),
        (
            "--cgroup no/such".into(),
            "cgroup no/such: no such control group".into(),
        ),
        (
            "--prometheus /no/such/file".into(),
            "/no/such/file: No such file or directory (os error 2)".into(),
        ),
    ] {
        assert_eq!(
            failure(&format!("top {what}"), 2),
            format!("scalevm: {why}\n")
        );
    }
    for what in [
        "--interval 0",
        "--interval x",
        "--count 0",
        "--json --prometheus x",
        "--pid 1 --all",
    ] {
        failure(&format!("top {what}"), 2);
    }
}
