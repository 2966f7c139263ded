//! This kernel's reports of real contention. Needs root; without it the tests say that they are
//! skipped.

use perf::{Options, Recorder, Recording};
use profile::Kind;
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One recording at a time: each watches the whole process.
static ALONE: Mutex<()> = Mutex::new(());
/// Names the part that a process started by a test plays.
const PART: &str = "SCALEVM_PERF_TEST_PART";

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records this process while `work` runs on this thread, which is not watched; none where not
/// everything can be recorded.
fn recorded(work: impl FnOnce()) -> Option<Recording> {
    let own = std::process::id();
    let mut recorder = match Recorder::open(&Options::default(), &[own]) {
        // A container may forbid the call.
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

/// Runs `work` repeatedly on 4 threads for `span`.
fn on_threads(span: Duration, work: impl Fn() + Sync) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Relaxed: the flag publishes nothing.
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
    // SAFETY: a mapping of its own, which nothing else refers to.
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
    // Four threads cannot wait for longer than four times the run time.
    assert!(row.wait <= 4.0 * span, "{row:?}");
    let busy = recording.busy();
    assert!(
        busy.iter().any(|(stack, _)| stack.contains("munmap_[k]")),
        "{}",
        busy.folded()
    );
    assert!(busy.total() > 0.1, "{}", busy.total());
    // It calls functions of the C library that have no frame pointer.
    let caller = |(stack, _): (&str, f64)| stack.contains("map_and_unmap");
    assert!(busy.iter().any(caller), "{}", busy.folded());
    let waiting = recording.waiting();
    assert!(
        waiting
            .iter()
            .any(|(stack, _)| stack.ends_with("schedule_[k]")),
        "no thread slept"
    );
}

static PLANTED: Mutex<u64> = Mutex::new(0);

/// Holds a lock for long, so that all other threads wait here.
#[inline(never)]
fn planted_contention() {
    let mut count = PLANTED.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::sleep(Duration::from_millis(1));
    *count += 1;
    // Code behind the call keeps it from being a tail call.
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
    assert!(row.name.starts_with("std::sync::Mutex "), "{row:?}");
    assert!(row.name.ends_with("PLANTED"), "{row:?}: {}", seen());
    assert!(row.contentions > 10 && row.wait > 0.5, "{row:?}");
}

/// Burns CPU time of this thread for `span`, however busy the machine is.
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

/// The CPU time that this thread has had.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to `time`, a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// This test program again, to run only `part`.
fn again(program: &std::path::Path, part: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", part, "--nocapture"])
        .env(PART, part);
    command
}

/// Returns true if this process was started to run `part`.
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
    // Process 1 is root's.
    let mut others = Recorder::open(&Options::default(), &[1]).expect("opens");
    let refused = others.start();
    assert!(paranoid < 1 || matches!(refused, Err(perf::Error::Denied { .. })));
    let missing = recorder.missing().join("\n");
    assert!(missing.contains("perf_event_paranoid=-1"), "{missing}");
    let go = AtomicBool::new(false);
    let recording = std::thread::scope(|scope| {
        scope.spawn(|| {
            // One thread exists before, one starts later.
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
    // SAFETY: the call takes no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become nobody");
        return;
    }
    // A place where the user nobody can read and execute it.
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
        "process 2147483647: no such process"
    );
    let never = Options {
        frequency: 0,
        ..Options::default()
    };
    assert_eq!(
        error(never, &[std::process::id()]),
        "recording: the frequency must not be 0"
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
    // It is joined a moment before it leaves the list.
    let gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        readers() == 0
    });
    assert!(gone, "a thread is left");
    let never = Recorder::open(&Options::default(), &own).expect("opens");
    assert!(never.finish().is_err(), "it has not been started");
}

/// Threads of this process that read rings.
fn readers() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("a list");
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm"));
    let names = threads.flatten().filter_map(|thread| name(thread).ok());
    names.filter(|name| name == "scalevm-perf\n").count()
}

// Two callers of one leaf; one of them uses the frame pointer for something else. None has a frame.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.frameless,\"ax\",@progbits",
    ".macro FUNCTION name",
    ".globl \\name",
    ".type \\name, @function",
    "\\name:",
    ".cfi_startproc",
    ".endm",
    ".macro END name",
    "ret",
    ".cfi_endproc",
    ".size \\name, . - \\name",
    ".endm",
    "FUNCTION frameless_burn",
    "1: dec %rdi",
    "jnz 1b",
    "END frameless_burn",
    "FUNCTION frameless_one",
    "sub $40, %rsp",
    ".cfi_adjust_cfa_offset 40",
    "call frameless_burn",
    "add $40, %rsp",
    ".cfi_adjust_cfa_offset -40",
    "END frameless_one",
    "FUNCTION frameless_two",
    "push %rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset %rbp, 0",
    "xor %ebp, %ebp",
    "call frameless_burn",
    "pop %rbp",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore %rbp",
    "END frameless_two",
    ".purgem FUNCTION",
    ".purgem END",
    ".popsection",
    options(att_syntax)
);

#[cfg(target_arch = "x86_64")]
#[test]
fn callers_without_frames_are_told_apart() {
    unsafe extern "C" {
        fn frameless_one(rounds: u64);
        fn frameless_two(rounds: u64);
    }
    let _alone = alone();
    let burn = || {
        let began = cpu_time();
        while cpu_time() - began < Duration::from_millis(200) {
            // SAFETY: the functions only count down in registers.
            unsafe {
                frameless_one(100_000);
                frameless_two(300_000);
            }
        }
    };
    let work = || {
        std::thread::scope(|scope| {
            scope.spawn(burn);
        })
    };
    let Some(recording) = recorded(work) else {
        return;
    };
    let busy = recording.busy();
    let below = |caller: &str| -> f64 {
        let end = format!("{caller};frameless_burn");
        let of = busy.iter().filter(|(stack, _)| stack.contains(&end));
        of.map(|(_, seconds)| seconds).sum()
    };
    let (one, two) = (below("frameless_one"), below("frameless_two"));
    assert!(
        one > 0.02 && two > 0.06,
        "{one} and {two}: {}",
        busy.folded()
    );
    // The callers' callers are known as well, although one of the functions overwrites the frame
    // pointer.
    for caller in ["frameless_one", "frameless_two"] {
        let end = format!("{caller};frameless_burn");
        let whole = |(stack, _): (&str, f64)| {
            stack.contains("__rust_begin_short_backtrace") && stack.contains(&end)
        };
        assert!(busy.iter().any(whole), "{}", busy.folded());
    }
}

#[test]
fn lives_are_no_longer_than_the_recording_and_nothing_takes_more() {
    let _alone = alone();
    let work = || on_threads(Duration::from_millis(500), map_and_unmap);
    let Some(recording) = recorded(work) else {
        return;
    };
    let (lived, span) = (
        recording.lived().as_secs_f64(),
        recording.span().as_secs_f64(),
    );
    // Four threads for half a second, and the test's own.
    assert!(
        lived > 1.5 && lived < (4.0 + 20.0) * span,
        "{lived} of {span}"
    );
    let busy = recording.busy().total();
    assert!(busy > 0.1 && busy <= lived, "{busy} of {lived}");
}

#[inline(never)]
fn deep(levels: u32) -> u64 {
    match levels {
        0 => (0..20_000).map(black_box).sum(),
        _ => black_box(deep(levels - 1)) + 1,
    }
}

#[test]
fn a_stack_that_is_too_deep_says_so_where_its_root_would_be() {
    let _alone = alone();
    let work = || {
        on_threads(Duration::from_millis(500), || {
            black_box(deep(300));
        });
    };
    let Some(recording) = recorded(work) else {
        return;
    };
    let busy = recording.busy();
    let seconds = |is: &dyn Fn(&[&str]) -> bool| -> f64 {
        let stacks = busy.iter();
        let right = stacks.filter(|(stack, _)| is(&stack.split(';').collect::<Vec<_>>()));
        right.map(|(_, seconds)| seconds).sum()
    };
    let levels = |stack: &[&str]| {
        stack
            .iter()
            .filter(|frame| frame.rsplit("::").next() == Some("deep"))
            .count()
    };
    let is_cut = |stack: &[&str]| stack.get(1) == Some(&"[deeper than the kernel records]");
    let all = seconds(&|stack| levels(stack) > 100);
    let marked = seconds(&|stack| levels(stack) > 100 && is_cut(stack));
    assert!(
        all > 0.1 && marked > 0.9 * all,
        "{marked} of {all}: {}",
        busy.folded()
    );
    let whole = seconds(&|stack| levels(stack) == 0 && is_cut(stack));
    assert!(whole < 0.1 * all, "{whole} of {all}");
}
