//! Figures of recordings.

use super::arbitrary;
use super::file::written;
use super::made::{Made, PAGE, map, touch, unmap};
use proptest::prelude::*;
use recording::{Birth, End, FaultKind, Group, Process, Summary, Thread, WaitFor, What};

/// A main thread and two workers, the second one ends.
fn server() -> Made {
    let mut made = Made::new(&["main", "worker-1", "worker-2"]);
    let wait = |on, nanoseconds| What::Wait {
        on,
        nanoseconds,
        by: None,
    };
    let failed = What::Call {
        call: map(9, 1),
        error: 12,
        parts: Vec::new(),
    };
    made.call(0, 0, map(0, 4))
        .event(1, 0, touch(0, 0, 4))
        .event(10, 0, What::Start { thread: 2 })
        .call(20, 1, map(1, 2))
        .call(30, 2, unmap(0, 1, 1))
        .event(40, 2, wait(WaitFor::Futex, 5000))
        .event(50, 1, wait(WaitFor::Poll, 25_000))
        .event(60, 0, failed)
        .event(60, 2, What::Exit)
        .event(100, 1, What::Unknown);
    made
}

#[test]
fn threads_are_added_up_by_role() {
    let summary = Summary::of(&server().0);
    let names = |index: usize| {
        let Group {
            role, processes, ..
        } = &summary.groups[index];
        assert_eq!((role.process.as_str(), *processes), ("server", 1));
        (role.name.as_str(), role.threads.len())
    };
    assert_eq!(summary.groups.len(), 2);
    assert_eq!(names(0), ("main", 1));
    assert_eq!(names(1), ("worker", 2));
    let work = summary.groups[1].work;
    assert_eq!((work.calls, work.faults), (2, 0));
    // One exists for all 100 µs, the other from 10 to 60.
    assert_eq!((work.existed, work.computed), (150_000, 6000));
    assert_eq!(work.slept, [5000, 0, 25_000, 0, 0, 0]);
    assert_eq!(work.quiet, 0);
    let main = summary.groups[0].work;
    assert_eq!((main.existed, main.quiet), (100_000, 40_000));
    assert_eq!(summary.groups[0].work.faults, 4);
    assert_eq!((summary.events, summary.unknown), (10, 1));
}

#[test]
fn calls_are_added_up_by_name() {
    let summary = Summary::of(&server().0);
    let calls = summary.calls.iter();
    let calls: Vec<_> = calls
        .map(|calls| (calls.name, calls.count, calls.failed, calls.bytes / PAGE))
        .collect();
    assert_eq!(calls, [("mmap", 3, 1, 6), ("munmap", 1, 0, 1)]);
    assert_eq!((summary.missing, summary.protected), (4, 0));
}

#[test]
fn memory_is_followed_over_time() {
    let mut made = Made::new(&["main"]);
    for number in 0..100 {
        // A mapping each 100 ms; each second one is unmapped.
        made.call(u64::from(number) * 100_000, 0, map(number, 2));
        if number % 2 == 1 {
            made.call(u64::from(number) * 100_000 + 1, 0, unmap(number, 0, 2));
        }
    }
    let summary = Summary::of(&made.0);
    let spans = &summary.spans;
    assert!((8..=16).contains(&spans.len()), "{}", spans.len());
    let length = spans[0].until;
    for (index, span) in (1..).zip(spans) {
        let until = (index * length).min(made.0.nanoseconds);
        assert_eq!(span.until, until);
        // Half of those so far are left.
        let made = until / 100_000_000 + 1;
        assert!(span.mappings.abs_diff(made / 2) <= 1, "{span:?}");
        assert_eq!(span.bytes, span.mappings * 2 * PAGE);
    }
    assert_eq!(spans.iter().map(|span| span.calls).sum::<u64>(), 150);
}

#[test]
fn processes_end_with_their_last_thread_and_programs_begin_with_nothing() {
    let mut made = Made::new(&["main"]);
    made.0.processes.push(Process {
        pid: 200,
        name: "child".to_owned(),
        birth: Birth::Forked,
    });
    for tid in 200..202 {
        made.0.threads.push(Thread {
            tid,
            process: 1,
            name: "child".to_owned(),
        });
    }
    let pages = |made: &Made| {
        let summary = Summary::of(&made.0);
        summary.spans.last().map_or(0, |span| span.bytes / PAGE)
    };
    let fork = |borrows| What::Fork { thread: 1, borrows };
    made.call(0, 0, map(0, 4)).event(1, 0, fork(true));
    assert_eq!(pages(&made), 4, "it is the parent's memory");
    made.event(2, 1, What::Exec).call(3, 1, map(1, 1));
    assert_eq!(pages(&made), 5);
    made.event(4, 1, What::Start { thread: 2 })
        .event(5, 1, What::Exit);
    assert_eq!(pages(&made), 5, "a thread is left");
    made.event(6, 2, What::Exit);
    assert_eq!(pages(&made), 4);
    made.0.events[1].what = fork(false);
    made.0.events.truncate(2);
    assert_eq!(pages(&made), 8, "it has a copy");
}

#[test]
fn holders_are_named_and_have_no_role() {
    let mut made = server();
    made.0.processes.push(Process {
        pid: 9,
        name: "ps".to_owned(),
        birth: Birth::Foreign,
    });
    made.0.threads.push(Thread {
        tid: 9,
        process: 1,
        name: "ps".to_owned(),
    });
    let hold = What::Hold {
        process: 0,
        write: false,
        nanoseconds: 700,
    };
    made.event(101, 3, hold.clone()).event(102, 3, hold);
    let summary = Summary::of(&made.0);
    assert_eq!(summary.groups.len(), 2);
    let holder = &summary.holders[0];
    assert_eq!((holder.process.as_str(), holder.count), ("ps", 2));
    assert_eq!(holder.nanoseconds, 1400);
}

#[test]
fn faults_of_both_kinds_are_counted() {
    let mut made = server();
    let mut what = touch(0, 0, 3);
    if let What::Fault { kind, .. } = &mut what {
        *kind = FaultKind::Protected;
    }
    made.event(110, 0, what);
    let summary = Summary::of(&made.0);
    assert_eq!((summary.missing, summary.protected), (4, 3));
}

proptest! {
    /// The figures of a file are those of its recording, whatever that is.
    #[test]
    fn a_file_has_the_figures_of_its_recording(recording in arbitrary::recording()) {
        let (found, known, end) = Summary::read(&written(&recording)[..]).expect("a file");
        prop_assert_eq!(found, Summary::of(&recording));
        prop_assert_eq!(known.threads, recording.threads);
        prop_assert_eq!(end, End::Whole);
    }
}
