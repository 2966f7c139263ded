//! What is said of programs whose trouble is known.

use super::support::command::number;
use super::support::place::Place;
use super::support::server::Server;
use super::{Watch, sees_locks};
use serde_json::Value;
use std::process::Command;

/// The frame of each load: `role` for the first threads, and `START` makes them.
const FRAME: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ROLE __attribute__((noinline)) static

ROLE void compute(long microseconds)
{
    struct timespec from, now;
    long seconds, nanoseconds;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        seconds = now.tv_sec - from.tv_sec, nanoseconds = now.tv_nsec - from.tv_nsec;
    } while (seconds * 1000000 + nanoseconds / 1000 < microseconds);
}

static void threads(int count, void *(*run)(void *))
{
    pthread_t id;
    while (count--)
        pthread_create(&id, 0, run, 0);
}

LOAD

int main(void)
{
    START;
    puts("ready");
    fflush(stdout);
    for (char end; read(0, &end, 1) == 1;)
        ;
    puts("unharmed");
}
"#;

/// Three threads fight for one mutex, next to sixty that wait for work.
const POOL: &str = r#"
pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER, pool_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t work_queue = PTHREAD_COND_INITIALIZER;

ROLE void critical(void)
{
    pthread_mutex_lock(&the_lock);
    compute(200);
    pthread_mutex_unlock(&the_lock);
}

static void *busy(void *unused)
{
    pthread_setname_np(pthread_self(), "busy");
    for (;;)
        critical();
    return unused;
}

static void *idle(void *unused)
{
    pthread_setname_np(pthread_self(), "pool");
    pthread_mutex_lock(&pool_lock);
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 300000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        /* Each wakes up at times, and finds nothing to do. */
        pthread_cond_timedwait(&work_queue, &pool_lock, &until);
    }
    return unused;
}
"#;

/// One thread holds a readers-writer lock for 20 of each 25 ms; readers want it.
const WRITER: &str = r#"
pthread_rwlock_t table_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

ROLE void compact(void)
{
    pthread_rwlock_wrlock(&table_lock);
    usleep(20000);
    pthread_rwlock_unlock(&table_lock);
    usleep(5000);
}

ROLE void lookup(void)
{
    pthread_rwlock_rdlock(&table_lock);
    compute(5);
    pthread_rwlock_unlock(&table_lock);
}

static void *writer(void *unused)
{
    pthread_setname_np(pthread_self(), "compactor");
    for (;;)
        compact();
    return unused;
}

static void *reader(void *unused)
{
    for (;;)
        lookup();
    return unused;
}
"#;

/// A thread that faults in memory, and gives it back by system calls.
const MEMORY: &str = r#"
ROLE void get(char *p, size_t size)
{
    for (size_t at = 0; at < size; at += 4096)
        p[at] = 1;
}

ROLE void drop(char *p, size_t size)
{
    madvise(p, size, MADV_DONTNEED);
}

static void *worker(void *unused)
{
    size_t size = 1 << 20;
    char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, size, MADV_NOHUGEPAGE);
    for (;;) {
        get(p, size);
        drop(p, size);
    }
    return unused;
}
"#;

/// One thread maps, touches and unmaps; another faults in fresh mappings.
const MAPS: &str = r#"
ROLE void map_unmap(void)
{
    char *p = mmap(0, 64 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[0] = 1;
    munmap(p, 64 << 12);
}

ROLE void fault_in(void)
{
    char *p = mmap(0, 512 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, 512 << 12, MADV_NOHUGEPAGE);
    for (int at = 0; at < 512; at++)
        p[at << 12] = 1;
    munmap(p, 512 << 12);
}

static void *mapper(void *unused)
{
    for (;;)
        map_unmap();
    return unused;
}

static void *faulter(void *unused)
{
    for (;;)
        fault_in();
    return unused;
}
"#;

/// Sixty-four threads take one mutex for a few instructions.
const STORM: &str = r#"
pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;
volatile unsigned long shared;

ROLE void update(void)
{
    pthread_mutex_lock(&big_lock);
    for (int i = 0; i < 200; i++)
        shared++;
    pthread_mutex_unlock(&big_lock);
}

static void *worker(void *unused)
{
    for (;;)
        update();
    return unused;
}
"#;

/// Threads that compute, for a part of the time with a mutex.
const CROWD: &str = r#"
pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

ROLE void critical(void)
{
    pthread_mutex_lock(&the_lock);
    compute(300);
    pthread_mutex_unlock(&the_lock);
}

static void *worker(void *unused)
{
    for (;;) {
        critical();
        compute(700);
    }
    return unused;
}
"#;

/// A profile of a load in which `start` makes the threads.
fn profile(name: &str, load: &str, start: &str, options: &str) -> Value {
    let place = Place::new(&format!("load-{name}"));
    let source = FRAME.replace("LOAD", load).replace("START", start);
    let server = Server::start(&mut Command::new(Server::built(&place, name, &source)));
    let line = format!("--pid {} --duration 2 {options}", server.pid());
    let profile = Watch::start(&place, &line).end(0);
    server.end();
    profile
}

fn sentence(profile: &Value) -> &str {
    profile["bottleneck"].as_str().expect("a sentence")
}

/// The row called `name` of a breakdown: busy, waiting, and idle seconds.
fn part(profile: &Value, by: &str, name: &str) -> [f64; 3] {
    let rows = profile["parts"][by].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == name);
    let row = row.unwrap_or_else(|| panic!("no {name}: {}", profile["parts"][by]));
    ["busy", "waits", "idle"].map(|field| number(&row[field]))
}

#[test]
fn threads_that_wait_for_work_are_no_bottleneck() {
    if !sees_locks() {
        return;
    }
    let start = "threads(3, busy), threads(60, idle)";
    let profile = profile("pool", POOL, start, "");
    let sentence = sentence(&profile);
    let lock = "of active time waits for pthread_mutex the_lock, taken in critical at ";
    assert!(sentence.contains(lock), "{sentence}");
    assert!(
        sentence.contains("(process pool/busy) holds it"),
        "{sentence}"
    );
    assert!(sentence.ends_with("of task time is idle"), "{sentence}");
    // Three threads compute or wait for each other; no pool is a lock.
    let locks = profile["locks"].as_array().expect("locks");
    assert!(
        locks
            .iter()
            .all(|row| !row["name"].to_string().contains("cond")),
        "{locks:?}"
    );
    let spent = |part: &str| number(&profile["spent"][part]);
    let all: f64 = [
        "work", "locks", "blocked", "queued", "idle", "stolen", "unseen",
    ]
    .map(spent)
    .iter()
    .sum();
    assert!(
        (all / number(&profile["lived"]) - 1.0).abs() < 0.01,
        "{}",
        profile["spent"]
    );
    assert!(spent("idle") > 0.9 * all, "{}", profile["spent"]);
    assert!(spent("unseen") < 0.02 * all, "{}", profile["spent"]);
    let [busy, waits, idle] = part(&profile, "thread", "pool/pool");
    assert!(
        idle > 50.0 * 2.0 && busy + waits < 0.05 * idle,
        "{busy} {waits} {idle}"
    );
    let named = part(&profile, "call", "pthread_cond work_queue from idle");
    assert!(named[2] > 50.0 * 2.0, "{named:?}");
}

#[test]
fn who_holds_a_lock_of_a_program_is_named() {
    if !sees_locks() {
        return;
    }
    let profile = profile(
        "table",
        WRITER,
        "threads(1, writer), threads(2, reader)",
        "",
    );
    let sentence = sentence(&profile);
    let waits = "waits for pthread_rwlock table_lock, taken in lookup at ";
    assert!(sentence.contains(waits), "{sentence}");
    let holds = "; compact (process table/compactor) holds it";
    assert!(sentence.contains(holds), "{sentence}");
    let row = &profile["holders"][0];
    assert!(
        number(&row["share"]) > 0.5 && row["mean"].is_null(),
        "{row}"
    );
    // It holds the lock for 20 ms at a time.
    let is_read = |row: &&Value| row["caller"].to_string().contains("lookup");
    let locks = profile["locks"].as_array().expect("locks");
    let read = locks.iter().find(is_read).expect("a row");
    let spread = &read["spread"];
    assert!(number(&spread["p50"]) > 0.005, "{spread}");
    assert!(
        number(&spread["p99"]) <= number(&spread["p999"]),
        "{spread}"
    );
    let buckets = spread["buckets"].as_array().expect("a histogram");
    let all: f64 = buckets.iter().map(|bucket| number(&bucket["count"])).sum();
    assert_eq!(all, number(&spread["count"]));
    // Slices without waits lie between those with them.
    let rows = profile["timeline"]["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "pthread_rwlock");
    let slices = row.expect("a row")["seconds"].as_array().expect("slices");
    let waiting = slices.iter().filter(|slice| number(slice) > 0.0).count();
    assert!(waiting > slices.len() / 4, "{slices:?}");
}

#[test]
fn work_is_named_by_its_calls_and_what_they_are_for() {
    if !sees_locks() {
        return;
    }
    let profile = profile("memory", MEMORY, "threads(1, worker)", "");
    let [faults, ..] = part(&profile, "call", "page faults from get");
    let [frees, ..] = part(&profile, "call", "madvise from drop");
    let work = number(&profile["spent"]["work"]);
    assert!(
        faults > 0.3 * work && frees > 0.02 * work,
        "{}",
        profile["parts"]["call"]
    );
    let sentence = sentence(&profile);
    assert!(
        sentence.contains(" of it in page faults from get"),
        "{sentence}"
    );
    let cpus = profile["parts"]["cpu"].as_array().expect("rows");
    let on_cpus: f64 = cpus.iter().map(|row| number(&row["busy"])).sum();
    let busy: f64 = part(&profile, "process", "memory")[0];
    assert!((on_cpus / busy - 1.0).abs() < 0.01, "{cpus:?}");
}

#[test]
fn a_mapper_beside_a_faulter_waits_for_mmap_lock() {
    if !sees_locks() {
        return;
    }
    let start = "threads(1, mapper), threads(1, faulter)";
    let profile = profile("maps", MAPS, start, "");
    let locks = profile["locks"].as_array().expect("locks");
    let waited = |name: &str| -> f64 {
        let rows = locks.iter().filter(|row| row["name"] == name);
        rows.map(|row| number(&row["wait"]) + number(&row["spin"]))
            .sum()
    };
    let all: f64 = locks
        .iter()
        .map(|row| number(&row["wait"]) + number(&row["spin"]))
        .sum();
    assert!(waited("mmap_lock") > 0.5 * all, "{locks:?}");
    let callers = locks
        .iter()
        .map(|row| row["caller"].as_str().expect("a name"));
    let callers: Vec<&str> = callers.collect();
    assert!(callers.contains(&"__vm_munmap"), "{callers:?}");
    let [faults, ..] = part(&profile, "call", "page faults from fault_in");
    assert!(faults > 0.1, "{}", profile["parts"]["call"]);
}

#[test]
fn a_storm_at_one_mutex_is_that_mutex() {
    if !sees_locks() {
        return;
    }
    let profile = profile("storm", STORM, "threads(64, worker)", "");
    let sentence = sentence(&profile);
    let lock = " waits for pthread_mutex big_lock, taken in update at ";
    assert!(sentence.contains(lock), "{sentence}");
    let spent = |part: &str| number(&profile["spent"][part]);
    // Two threads run at a time; the others wait for the lock, or for a CPU with it in sight.
    let waiting = spent("locks") + spent("queued");
    assert!(
        waiting > 0.8 * number(&profile["lived"]),
        "{}",
        profile["spent"]
    );
}

/// How long threads that were woken for the lock then waited for a CPU, on average.
fn queued(profile: &Value, lock: &str) -> f64 {
    let rows = profile["locks"].as_array().expect("locks");
    let row = rows.iter().find(|row| row["name"] == lock);
    let queued = &row.unwrap_or_else(|| panic!("{rows:?}"))["queued"];
    for (less, more) in [("p50", "p99"), ("p99", "p999"), ("p999", "worst")] {
        assert!(number(&queued[less]) <= number(&queued[more]), "{queued}");
    }
    number(&queued["total"]) / number(&queued["count"])
}

#[test]
fn more_threads_than_cpus_wait_for_a_cpu_after_the_lock() {
    if !sees_locks() {
        return;
    }
    let cpus = std::thread::available_parallelism()
        .expect("a number")
        .get();
    let mean = |threads: usize| {
        let start = format!("threads({threads}, worker)");
        let profile = profile("crowd", CROWD, &start, "");
        queued(&profile, "pthread_mutex the_lock")
    };
    // Another program on a CPU makes even one thread a CPU wait.
    let mut tries = (0..4).map(|_| (mean(cpus), mean(6 * cpus)));
    let found = tries.find(|(few, many)| *many > 2e-4 && *many > 4.0 * few);
    assert!(
        found.is_some(),
        "as long in a crowd as on CPUs of their own"
    );
}
