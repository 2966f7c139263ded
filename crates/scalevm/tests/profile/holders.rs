//! Profiles name the threads that hold `mmap_lock`.

use super::support::command::{json, text};
use super::support::place::Place;
use super::{QUICK, profile, sees_locks};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maps and unmaps next to mappings with many pages, and tells its number in the file `PIDFILE`.
const IS_READ: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

char *testcase_description = "Maps and unmaps while somebody reads its smaps";

void testcase(unsigned long long *iterations, unsigned long nr)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS, size = 8 << 20;
    for (int i = 0; i < 32; i++) {
        /* Neighbours with the same rights would become one mapping. */
        char *p = mmap(0, size, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, flags, -1, 0);
        madvise(p, size, MADV_NOHUGEPAGE);
        for (int at = 0; at < size; at += 4096)
            *(volatile char *)(p + at);
    }
    FILE *file = fopen("PIDFILE", "w");
    fprintf(file, "%d", getpid());
    fclose(file);
    for (;;) {
        munmap(mmap(0, 1 << 16, PROT_READ, flags, -1, 0), 1 << 16);
        (*iterations)++;
    }
}
"#;

/// Forks a process of 128 MB, while another of its threads maps and unmaps.
const FORKS: &str = r#"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

char *testcase_description = "Forks of a large process that maps meanwhile";

static void *maps(void *unused)
{
    for (;;) {
        munmap(mmap(0, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 16);
        /* So rarely that all of it is recorded. */
        usleep(1000);
    }
    return unused;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
    pthread_t thread;
    size_t size = 128 << 20;
    char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, size, MADV_NOHUGEPAGE);
    memset(p, 1, size);
    pthread_create(&thread, 0, maps, 0);
    for (;;) {
        pid_t child = fork();
        if (!child)
            _exit(0);
        waitpid(child, 0, 0);
        (*iterations)++;
    }
}
"#;

/// Reads the smaps of the process whose number is in `file`, again and again.
fn read_smaps(file: &str, stop: &AtomicBool) {
    // Relaxed: the flag publishes nothing.
    while !stop.load(Ordering::Relaxed) {
        let pid = std::fs::read_to_string(file).unwrap_or_default();
        if std::fs::read_to_string(format!("/proc/{pid}/smaps")).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The holders of `mmap_lock`, as process, function, kind, and true if the process is
/// watched.
fn holders(profile: &Value) -> Vec<(&str, &str, &str, bool)> {
    let rows = profile["holders"].as_array().expect("holders").iter();
    rows.filter(|row| row["lock"] == "mmap_lock")
        .map(|row| {
            let text = |name: &str| row[name].as_str().expect("text");
            let is_watched = row["watched"].as_bool().expect("yes or no");
            (text("process"), text("function"), text("kind"), is_watched)
        })
        .collect()
}

/// A profile that has such holders. One recording may lack them: loops of other tests use up what
/// recording holders may cost on a CPU.
fn profile_with(such: impl Fn(&Value) -> bool, record: impl Fn() -> Value) -> Value {
    let mut profiles = (0..8).map(|_| record());
    let found = profiles.find(such);
    found.expect("one of eight recordings has the holder")
}

#[test]
fn who_reads_smaps_from_outside_holds_the_lock() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("smaps");
    let number = place.file("pid");
    let victim = place.source("victim.c", &IS_READ.replace("PIDFILE", &number));
    let stop = AtomicBool::new(false);
    let profile = std::thread::scope(|scope| {
        scope.spawn(|| read_smaps(&number, &stop));
        let has_holders = |profile: &Value| !holders(profile).is_empty();
        let found = profile_with(has_holders, || {
            let line = format!("profile {victim} {QUICK} --json");
            let stdout = place.run(&line, &[]).stdout;
            json(&text(&stdout)).pop().expect("a profile")
        });
        stop.store(true, Ordering::Relaxed);
        found
    });
    let own = std::fs::read_to_string("/proc/self/comm").expect("a name");
    // Only the reader makes the one thread of the victim wait.
    let holders = holders(&profile);
    let (process, function, kind, is_watched) = *holders.first().expect("a holder");
    assert_eq!(
        (process, kind, is_watched),
        (own.trim_end(), "rwsem read", false)
    );
    assert!(function.contains("smap"), "{holders:?}");
    let row = &profile["holders"][0];
    let number = |name: &str| row[name].as_f64().expect("a number");
    assert!(number("holds") > 0.0 && number("share") > 0.5, "{row}");
    assert!(
        number("mean") > 1e-5 && number("mean") <= number("worst"),
        "{row}"
    );
    assert!(number("p99") <= number("worst"), "{row}");
}

#[test]
fn a_large_fork_holds_the_lock() {
    if !sees_locks() {
        return;
    }
    let place = Place::new("forks");
    let file = place.source("forks.c", FORKS);
    let is_fork = |&(_, function, kind, is_watched): &(&str, &str, &str, bool)| {
        let forks = ["dup_mmap", "dup_mm", "copy_process", "copy_mm"];
        forks.contains(&function) && kind == "rwsem write" && is_watched
    };
    profile_with(
        |profile| holders(profile).iter().any(is_fork),
        || profile(&place, &format!("{file} {QUICK}")),
    );
}
