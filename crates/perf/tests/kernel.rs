//! What this kernel says of real contention. Needs root; without it there is nothing to
//! see, and the tests say so.

use perf::{Options, Recorder, Recording};
use profile::Kind;
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One recording at a time: each watches the whole process.
static ALONE: Mutex<()> = Mutex::new(());
/// Says to the process started by a test what it is to do.
const PART: &str = "SCALEVM_PERF_TEST_PART";

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records this process while `work` runs on this thread, which is not watched; none if
/// not all can be recorded here.
fn recorded(work: impl FnOnce()) -> Option<Recording> {
    let own = std::process::id();
    let mut recorder = match Recorder::open(&Options::default(), &[own]) {
        // As where a container forbids the call.
        Err(perf::Error::Refused(why)) => {
            eprintln!("skipped: {why}");
            return None;
        }
        opened => opened.expect("opens"),
    };
    if !recorder.missing().is_empty() {
        eprintln!("skipped: {}", recorder.missing().join("; "));
        return None;
    }
    recorder.start().expect("starts");
    work();
    Some(recorder.finish().expect("finishes"))
}

/// Runs `work` over and over on 4 threads for `span`.
fn on_threads(span: Duration, work: impl Fn() + Sync) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Relaxed: a flag that publishes nothing.
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    work()
                }
            });
        }
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
    });
}

fn map_and_unmap() {
    let length = 128 << 20;
    let (none, rights) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
    // SAFETY: a mapping of its own that nobody else knows of.
    unsafe {
        let base = libc::mmap(none, length, rights, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        libc::munmap(base, length);
    }
}

#[test]
fn contention_for_mmap_lock_is_seen_and_named() {
    let _alone = alone();
    let Some(recording) = recorded(|| on_threads(Duration::from_secs(1), map_and_unmap)) else {
        return;
    };
    let span = recording.span().as_secs_f64();
    let locks = recording.locks(4.0 * span);
    let row = locks.iter().find(|lock| {
        lock.name == "mmap_lock" && lock.kind == Kind::RwsemWrite && lock.caller.contains("munmap")
    });
    let row = row.unwrap_or_else(|| panic!("no row for munmap: {locks:#?}"));
    assert!(row.wait + row.spin > 0.0, "{row:?}");
    // Four threads can not wait for longer than four times the time there was.
    assert!(row.wait <= 4.0 * span, "{row:?}");
    let busy = recording.busy();
    assert!(
        busy.iter().any(|(stack, _)| stack.contains("munmap_[k]")),
        "{}",
        busy.folded()
    );
    assert!(busy.total() > 0.1, "{}", busy.total());
    // It calls functions of the C library that have no frame.
    let caller = |(stack, _): (&str, f64)| stack.contains("map_and_unmap");
    assert!(busy.iter().any(caller), "{}", busy.folded());
    let waiting = recording.waiting();
    assert!(
        waiting
            .iter()
            .any(|(stack, _)| stack.ends_with("schedule_[k]")),
        "no one slept"
    );
}

static PLANTED: Mutex<u64> = Mutex::new(0);

/// Holds a lock for long, so that all others wait here.
#[inline(never)]
fn planted_contention() {
    let mut count = PLANTED.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::sleep(Duration::from_millis(1));
    *count += 1;
    // Whatever follows the call keeps it from being the function's last.
    black_box(&mut *count);
}

#[test]
fn a_lock_of_a_program_is_seen_where_it_is_wanted() {
    let _alone = alone();
    let Some(recording) = recorded(|| on_threads(Duration::from_secs(1), planted_contention))
    else {
        return;
    };
    let locks = recording.locks(4.0);
    let row = locks
        .iter()
        .find(|lock| lock.kind == Kind::Futex && lock.caller.contains("planted_contention"));
    let seen = || recording.waiting().folded();
    let row = row.unwrap_or_else(|| panic!("{locks:#?}\n{}", seen()));
    assert_eq!(row.name, "std::sync::Mutex", "{}", seen());
    assert!(row.contentions > 10 && row.wait > 0.5, "{row:?}");
}

/// Burns a CPU for a while, of its own time: however busy the machine is.
#[inline(never)]
fn burn_for(span: Duration) {
    let began = cpu_time();
    let mut sum = 0_u64;
    while cpu_time() - began < span {
        for i in 0..10_000 {
            sum = black_box(sum.wrapping_add(i));
        }
    }
    black_box(sum);
}

/// What this thread has had of a CPU.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// This test program again, to do only `part`.
fn again(program: &std::path::Path, part: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", part, "--nocapture"])
        .env(PART, part);
    command
}

/// Whether this process was started to do `part`.
fn is_part(part: &str) -> bool {
    std::env::var_os(PART).is_some_and(|wanted| wanted == part)
}

#[test]
fn part_of_a_child() {
    if is_part("part_of_a_child") {
        burn_for(Duration::from_millis(200));
    }
}

#[test]
fn a_child_that_is_dead_by_the_end_has_names() {
    let _alone = alone();
    let program = std::env::current_exe().expect("an executable");
    let child = || {
        let status = again(&program, "part_of_a_child").status().expect("runs");
        assert!(status.success());
    };
    let Some(recording) = recorded(child) else {
        return;
    };
    let busy = recording.busy();
    let seconds: f64 = busy
        .iter()
        .filter(|(stack, _)| stack.contains("part_of_a_child") && stack.contains("burn_for"))
        .map(|(_, seconds)| seconds)
        .sum();
    assert!(seconds > 0.1, "{}", busy.folded());
}

#[test]
fn part_without_privilege() {
    if !is_part("part_without_privilege") {
        return;
    }
    let own = std::process::id();
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("a number");
    let paranoid: i32 = text.trim().parse().expect("a number");
    let mut recorder = match Recorder::open(&Options::default(), &[own]) {
        Err(error) => {
            assert!(matches!(error, perf::Error::Refused(_)), "{error}");
            return;
        }
        Ok(recorder) => recorder,
    };
    // The first process is root's.
    let mut others = Recorder::open(&Options::default(), &[1]).expect("opens");
    let refused = others.start();
    assert!(paranoid < 1 || matches!(refused, Err(perf::Error::Refused(_))));
    let missing = recorder.missing().join("\n");
    assert!(missing.contains("perf_event_paranoid=-1"), "{missing}");
    let go = AtomicBool::new(false);
    let recording = std::thread::scope(|scope| {
        scope.spawn(|| {
            // One thread that is there before, one that comes later.
            while !go.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            burn_for(Duration::from_millis(300));
        });
        recorder.start().expect("starts");
        go.store(true, Ordering::Relaxed);
        let later = scope.spawn(|| burn_later(Duration::from_millis(500)));
        later.join().expect("burns");
        recorder.finish().expect("finishes")
    });
    let busy = recording.busy();
    let folded = busy.folded();
    assert!(
        busy.iter().any(|(stack, _)| stack.contains("burn_for")),
        "{folded}"
    );
    assert!(
        busy.iter().any(|(stack, _)| stack.contains("burn_later")),
        "{folded}"
    );
    assert!(paranoid < 2 || !folded.contains("_[k]"), "{folded}");
    assert!(recording.locks(1.0).is_empty() && recording.foreign().is_none());
    assert!(!recording.notes().is_empty());
}

#[inline(never)]
fn burn_later(span: Duration) {
    burn_for(span);
    black_box(Instant::now());
}

#[test]
fn without_privilege_user_stacks_are_left() {
    use std::os::unix::process::CommandExt;
    // SAFETY: no arguments in memory.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become nobody");
        return;
    }
    // Where nobody can read and run it.
    let program = std::env::temp_dir().join(format!("scalevm-perf-test-{}", std::process::id()));
    let own = std::env::current_exe().expect("an executable");
    std::fs::copy(own, &program).expect("a copy");
    let mut command = again(&program, "part_without_privilege");
    let result = command.uid(65534).gid(65534).current_dir("/").output();
    std::fs::remove_file(&program).expect("removed");
    let output = result.expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn what_can_not_be_recorded_is_an_error() {
    let error = |options: Options, roots: &[u32]| match Recorder::open(&options, roots) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened"),
    };
    assert_eq!(
        error(Options::default(), &[u32::MAX >> 1]),
        "process 2147483647: there is none"
    );
    let never = Options {
        frequency: 0,
        ..Options::default()
    };
    assert_eq!(
        error(never, &[std::process::id()]),
        "recording: the frequency is 0"
    );
}

#[test]
fn a_recorder_given_up_leaves_nothing_behind() {
    let _alone = alone();
    let own = [std::process::id()];
    let mut recorder = Recorder::open(&Options::default(), &own).expect("opens");
    assert_eq!(readers(), 0);
    recorder.start().expect("starts");
    drop(recorder);
    // It is joined a moment before it is gone from the list.
    let gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        readers() == 0
    });
    assert!(gone, "a thread is left");
    let never = Recorder::open(&Options::default(), &own).expect("opens");
    assert!(never.finish().is_err(), "it was not started");
}

/// Threads of this process that read rings.
fn readers() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("a list");
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm"));
    let names = threads.flatten().filter_map(|thread| name(thread).ok());
    names.filter(|name| name == "scalevm-perf\n").count()
}
