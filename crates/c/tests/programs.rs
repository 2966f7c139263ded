//! Programs in C and C++ that use the libraries: as they are, under valgrind, and compiled for
//! ThreadSanitizer.

mod support;

use std::os::unix::process::ExitStatusExt;
use support::{LIBRARIES, Library, Program, stderr, stdout};

/// The test programs, and their numbers of rounds.
const PROGRAMS: [(&str, &str); 4] = [
    ("locks.c", "320"),
    ("list.c", "20000"),
    ("rest.c", "3000"),
    ("all.cc", "2000"),
];

/// Fewer rounds, where each takes longer.
const FEW: &str = "160";

/// Fails on errors and on lost blocks, and prints nothing else.
const VALGRIND: [&str; 5] = [
    "valgrind",
    "-q",
    "--leak-check=full",
    "--error-exitcode=9",
    "--fair-sched=try",
];

const TSAN: [&str; 1] = ["-fsanitize=thread"];

#[test]
fn programs_pass() {
    for library in LIBRARIES {
        for (source, rounds) in PROGRAMS {
            Program::new(source, library, &[]).pass(&[], &[rounds]);
        }
    }
}

#[test]
fn any_number_of_threads_may_lock() {
    Program::new("many.c", Library::Shared, &[]).pass(&[], &[]);
}

#[test]
fn valgrind_has_nothing_to_say() {
    for library in LIBRARIES {
        for (source, _) in PROGRAMS {
            Program::new(source, library, &[]).pass(&VALGRIND, &[FEW]);
        }
    }
}

#[test]
fn thread_sanitizer_has_nothing_to_say() {
    for library in LIBRARIES {
        for (source, _) in PROGRAMS {
            Program::new(source, library, &TSAN).pass(&[], &[FEW]);
        }
    }
}

/// Waits that signals interrupt, futexes whose words have changed, and an allocator that stores to
/// it: no function of the library changes errno.
#[test]
fn errno_is_kept() {
    for library in LIBRARIES {
        Program::new("errno.c", library, &[]).pass(&[], &["400"]);
    }
}

#[test]
fn an_element_freed_early_is_caught() {
    let output = Program::new("list.c", Library::Shared, &["-DPLANT=1"]).run(&[], &[FEW]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("not so: element->number == element->again"),
        "{}",
        stderr(&output)
    );
    let flags = [TSAN[0], "-DPLANT=2"];
    for library in LIBRARIES {
        let output = Program::new("list.c", library, &flags).run(&[], &["3000"]);
        assert!(
            stderr(&output).contains("WARNING: ThreadSanitizer"),
            "{}",
            stderr(&output)
        );
        assert!(!output.status.success());
    }
}

/// Misuse that ends the process, and the line that it prints.
const MISUSE: [(&str, &str); 21] = [
    ("tas", "scalevm_tas_unlock: the lock is not held"),
    ("ticket", "scalevm_ticket_unlock: the lock is not held"),
    ("conbo", "scalevm_conbo_unlock: the lock is not held"),
    ("mcs", "scalevm_mcs_unlock: the lock is not held"),
    ("clh", "scalevm_clh_unlock: the lock is not held"),
    ("k42", "scalevm_k42_unlock: the lock is not held"),
    ("mutex", "scalevm_mutex_unlock: the lock is not held"),
    ("rdunlock", "scalevm_rwlock_rdunlock: the lock is not held"),
    ("wrunlock", "scalevm_rwlock_wrunlock: the lock is not held"),
    ("exit", "scalevm_epoch_exit: the caller is in no section"),
    ("wait", "scalevm_epoch_wait: the caller is in a section"),
    (
        "barrier",
        "scalevm_epoch_barrier: the caller is in a section",
    ),
    (
        "callback",
        "scalevm: epoch: barrier inside a callback would wait for itself",
    ),
    ("passed", "scalevm_epoch_passed: no moment"),
    ("future", "scalevm_epoch_passed: no moment"),
    ("readers", "scalevm_rwlock_rdlock: too many readers"),
    ("thread", "scalevm_epoch: a thread ended in a section"),
    (
        "threads",
        "scalevm_epoch_enter: more threads than it was made for",
    ),
    (
        "release",
        "scalevm: counter: more released than was reserved",
    ),
    (
        "releases",
        "scalevm: counter: more released than was reserved",
    ),
    (
        "limit",
        "scalevm_counter: made for more than 1024 threads, or with a limit of more than 2^63 - 1",
    ),
];

/// The bench measures the libraries that are installed, and names those that are missing.
#[test]
fn the_bench_runs() {
    let output = Program::new("../../bench/beside.c", Library::Shared, &[]).run(&[], &["1000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.count(), 16, "{text}");
    assert!(
        text.contains("ck is missing") && text.contains("liburcu is missing"),
        "{text}"
    );
}

#[test]
fn misuse_ends_the_process_with_one_line() {
    let program = Program::new("misuse.c", Library::Shared, &[]);
    for (case, line) in MISUSE {
        let output = program.run(&[], &[case]);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{case}");
        assert_eq!(stderr(&output), format!("{line}\n"), "{case}");
    }
    program.pass(&[], &["none of them"]);
}
