//! A span of time, and some of the threads.

use super::arbitrary;
use super::file::written;
use super::made::{Made, PAGE, READ_WRITE, map, place, touch, unmap};
use super::support::anonymous;
use proptest::prelude::*;
use recording::{
    Birth, Call, Event, File, Process, Prot, Recording, Summary, Thread, WaitFor, What,
};

const READ_ONLY: Prot = Prot {
    write: false,
    ..READ_WRITE
};

/// Lines of text, one an event.
fn lines(recording: &Recording) -> Vec<String> {
    recording.events.iter().map(Event::to_string).collect()
}

fn wait(on: WaitFor, nanoseconds: u64, by: Option<(u32, u32)>) -> What {
    What::Wait {
        on,
        nanoseconds,
        by,
    }
}

#[test]
fn a_cut_gives_what_existed() {
    let mut made = Made::new(&["main"]);
    let heap = Call::Break {
        mapping: 0,
        length: 2 * PAGE,
    };
    made.event(0, 0, What::Given { call: heap })
        .call(1, 0, map(1, 10))
        .call(2, 0, map(2, 1))
        .call(3, 0, unmap(2, 0, 1))
        .call(4, 0, unmap(1, 2, 3))
        .call(
            5,
            0,
            Call::Protect {
                at: place(1, 8),
                length: PAGE,
                prot: READ_ONLY,
            },
        )
        .event(20, 0, touch(1, 0, 1))
        .call(30, 0, unmap(1, 0, 1))
        .call(40, 0, map(3, 1));
    let part = made.0.cut(10_000, 30_000);
    assert_eq!(
        lines(&part),
        [
            "0.000000000 t0 +0 given brk m0 8192",
            "0.000000000 t0 +0 given mmap m1 40960 rw- private",
            "0.000000000 t0 +0 given munmap m1+0x2000 12288",
            "0.000000000 t0 +0 given mprotect m1+0x8000 4096 r--",
            "0.000010000 t0 +1000 fault m1+0x0 pages 1 write missing",
            "0.000020000 t0 +1000 munmap m1+0x0 4096 = 0",
        ]
    );
    assert_eq!(part.nanoseconds, 20_000);
    assert_eq!(made.0.cut(0, u64::MAX), made.0);
    let nothing = made.0.cut(50_000, 90_000);
    assert_eq!(nothing.nanoseconds, 0);
}

#[test]
fn what_replaces_and_what_moves_is_followed() {
    let mut made = Made::new(&["main"]);
    let remap = |at, pages: u64, new: u64, to| Call::Remap {
        at,
        length: pages * PAGE,
        new_length: new * PAGE,
        to,
    };
    made.call(0, 0, map(0, 8))
        .call(1, 0, anonymous(1, 2, Some(place(0, 2))))
        .call(2, 0, remap(place(0, 4), 4, 16, Some(2)))
        .call(3, 0, remap(place(1, 0), 2, 1, None))
        .event(9, 0, What::Exit);
    let part = made.0.cut(5000, 9000);
    assert_eq!(
        lines(&part)[..3],
        [
            "0.000000000 t0 +0 given mmap m0 8192 rw- private",
            "0.000000000 t0 +0 given mmap m1 4096 rw- private",
            "0.000000000 t0 +0 given mmap m2 65536 rw- private",
        ]
    );
}

#[test]
fn a_cut_ends_waits_that_began_before_it() {
    let mut made = Made::new(&["main", "worker"]);
    made.event(1, 0, What::Wake { thread: 1 })
        .event(2, 0, What::Wake { thread: 1 })
        // Woken before the cut, and on a CPU after it.
        .event(12, 1, wait(WaitFor::Futex, 11_000, Some((0, 1))))
        .event(14, 0, What::Wake { thread: 1 })
        .event(15, 1, wait(WaitFor::Futex, 1000, Some((0, 2))));
    let part = made.0.cut(11_500, 20_000);
    assert_eq!(
        lines(&part),
        [
            "0.000000500 t1 +500 wait futex 500 ns",
            "0.000002500 t0 +1000 wake t1",
            "0.000003500 t1 +1000 wait futex 1000 ns by t0 wake 0",
        ]
    );
}

/// A process of two threads, which forks another one with two threads; a reader of `/proc`.
fn family() -> Made {
    let mut made = Made::new(&["main", "worker-1"]);
    let process = |pid, name: &str, birth| Process {
        pid,
        name: name.to_owned(),
        birth,
    };
    let thread = |tid, process, name: &str| Thread {
        tid,
        process,
        name: name.to_owned(),
    };
    let recording = &mut made.0;
    let child = process(200, "child", Birth::Forked);
    let reader = process(300, "ps", Birth::Foreign);
    recording.processes.extend([child, reader]);
    let more = [
        thread(200, 1, "child"),
        thread(201, 1, "helper-1"),
        thread(300, 2, "ps"),
    ];
    recording.threads.extend(more);
    let file = |name: &str| File {
        name: name.to_owned(),
        length: PAGE,
    };
    recording.files = vec![file("/lib/a.so"), file("/lib/b.so")];
    let mapped = |mapping, number| {
        let mut call = map(mapping, 1);
        if let Call::Map { file, .. } = &mut call {
            *file = Some((number, 0));
        }
        call
    };
    let fork = What::Fork {
        thread: 2,
        borrows: false,
    };
    let hold = What::Hold {
        process: 1,
        write: false,
        nanoseconds: 500,
    };
    made.call(1, 0, mapped(0, 0))
        .call(2, 0, mapped(1, 1))
        .event(3, 0, What::Start { thread: 1 })
        .event(4, 0, What::Wake { thread: 1 })
        .event(4, 1, wait(WaitFor::Futex, 900, Some((0, 0))))
        .event(5, 0, fork)
        .event(6, 2, What::Start { thread: 3 })
        .call(7, 2, map(2, 4))
        .call(8, 2, unmap(1, 0, 1))
        .event(9, 3, touch(2, 0, 2))
        .event(10, 2, What::Wake { thread: 3 })
        .event(11, 2, What::Wake { thread: 0 })
        .event(12, 4, hold)
        .event(13, 3, wait(WaitFor::Futex, 300, Some((2, 0))))
        .call(14, 2, unmap(2, 2, 2))
        .event(15, 3, What::Exit)
        .event(16, 0, wait(WaitFor::Futex, 100, Some((2, 1))));
    made
}

#[test]
fn a_thread_alone_has_what_others_gave_it() {
    let whole = family().0;
    let part = whole.only(&[3]);
    assert_eq!(
        lines(&part),
        [
            "0.000006000 t0 +0 given mmap m0 4096 rw- private f0+0x0",
            "0.000006000 t0 +0 given mmap m1 4096 rw- private f1+0x0",
            "0.000006000 t0 +0 wait time 6000 ns",
            "0.000007000 t0 +0 given mmap m2 16384 rw- private",
            "0.000009000 t0 +1000 fault m2+0x0 pages 2 write missing",
            "0.000013000 t0 +1000 wait futex 300 ns",
            "0.000014000 t0 +0 given munmap m2+0x2000 8192",
            "0.000015000 t0 +1000 exit",
        ]
    );
    assert_eq!(part.threads.len(), 1);
    assert_eq!(part.threads[0].process, 0);
    assert_eq!(part.processes[0].name, "child");
    assert_eq!(part.processes[0].birth, Birth::Existed);
    assert_eq!(whole.only(&[0, 1, 2, 3, 4]), whole);
}

#[test]
fn a_program_that_another_one_replaced_gives_nothing() {
    let mut made = Made::new(&["main", "worker"]);
    let given = |mapping| What::Given {
        call: map(mapping, 1),
    };
    made.event(0, 0, given(0))
        .event(1, 0, What::Exec)
        .event(2, 0, given(1))
        .event(3, 0, What::Start { thread: 1 })
        .event(4, 1, touch(1, 0, 1));
    assert_eq!(
        lines(&made.0.only(&[1])),
        [
            "0.000003000 t0 +0 given mmap m1 4096 rw- private",
            "0.000003000 t0 +0 wait time 3000 ns",
            "0.000004000 t0 +1000 fault m1+0x0 pages 1 write missing",
        ]
    );
}

#[test]
fn wake_ups_that_stay_are_numbered_anew() {
    // What a thread computed before events that are left out is in the next one.
    let part = family().0.only(&[0, 2]);
    assert_eq!(
        lines(&part)[2..],
        [
            "0.000005000 t0 +3000 fork t1",
            "0.000007000 t1 +2000 mmap m2 16384 rw- private = 0",
            "0.000008000 t1 +1000 munmap m1+0x0 4096 = 0",
            "0.000011000 t1 +2000 wake t0",
            "0.000014000 t1 +1000 munmap m2+0x2000 8192 = 0",
            "0.000016000 t0 +1000 wait futex 100 ns by t1 wake 0",
        ]
    );
    assert_eq!(part.processes.len(), 2);
    assert_eq!(part.processes[1].birth, Birth::Forked);
}

#[test]
fn a_cut_leaves_out_who_is_not_there() {
    let whole = family().0;
    let names = |part: &Recording| -> Vec<String> {
        let names = part.threads.iter().map(|thread| thread.name.clone());
        names.collect()
    };
    let early = whole.cut(0, 4000);
    assert_eq!(names(&early), ["main", "worker-1", "ps"]);
    assert_eq!(early.processes.len(), 2);
    let late = whole.cut(16_000, 20_000);
    assert_eq!(names(&late), ["main", "worker-1", "child", "ps"]);
    assert_eq!(late.processes[1].birth, Birth::Existed);
    assert_eq!(late.files, whole.files);
}

/// Operations of threads on mappings of 16 pages, as a program might do them.
fn program() -> impl Strategy<Value = Recording> {
    let step = (
        0..3_u32,
        0..6,
        any::<prop::sample::Index>(),
        0..16_u64,
        1..9_u64,
    );
    prop::collection::vec(step, 1..60).prop_map(|steps| {
        let mut made = Made::new(&["main", "worker-1", "worker-2"]);
        let mut next = 0;
        for (at, (thread, what, index, from, pages)) in (0..).zip(steps) {
            let mapping = index.index(next.max(1) as usize) as u32;
            let length = pages * PAGE;
            let call = match what {
                1 if next > 0 => unmap(mapping, from, pages),
                2 if next > 0 => Call::Protect {
                    at: place(mapping, from),
                    length,
                    prot: READ_ONLY,
                },
                3 if next > 0 => {
                    next += 1;
                    Call::Remap {
                        at: place(mapping, from),
                        length,
                        new_length: 16 * PAGE,
                        to: Some(next - 1),
                    }
                }
                4 if next > 0 => {
                    made.event(at, thread, touch(mapping, from, 1));
                    continue;
                }
                _ => {
                    next += 1;
                    map(next - 1, 16)
                }
            };
            made.call(at, thread, call);
        }
        made.0
    })
}

/// The mappings at the end of a recording, and their bytes.
fn at_end(recording: &Recording) -> (u64, u64) {
    let summary = Summary::of(recording);
    let last = summary.spans.last().expect("a part of the time");
    (last.mappings, last.bytes)
}

proptest! {
    #[test]
    fn a_cut_ends_with_the_memory_of_the_whole(recording in program(), from in 0..60_000_u64) {
        let part = recording.cut(from, u64::MAX);
        prop_assert_eq!(at_end(&part), at_end(&recording));
        // A part of a part, which begins with what is given.
        let again = part.cut(from / 2, u64::MAX);
        prop_assert_eq!(at_end(&again), at_end(&recording));
    }

    #[test]
    fn threads_that_stay_do_what_they_did(recording in program(), one in 0..3_u32) {
        let part = recording.only(&[one]);
        let mut found = part.events;
        found.retain(|event| !matches!(event.what, What::Given { .. }));
        let mut expected = recording.events;
        expected.retain(|event| event.thread == one);
        expected.iter_mut().for_each(|event| event.thread = 0);
        // It works on what is mapped, or on what nobody has mapped.
        prop_assert_eq!(found, expected);
        prop_assert_eq!(part.lost.unknown, 0);
    }

    /// A part of any recording can be written, and names wake-ups that are in it.
    #[test]
    fn parts_are_recordings(
        recording in arbitrary::recording(),
        from in 0..60_000_000_000_u64,
        length in 0..60_000_000_000_u64,
        threads in prop::collection::vec(0..5_u32, 0..5),
    ) {
        for part in [recording.cut(from, from + length), recording.only(&threads)] {
            let (found, _) = Recording::read(&written(&part)[..]).expect("it can be read");
            prop_assert_eq!(&found, &part);
            let wakes = |thread| {
                let wakes = |event: &&Event| {
                    event.thread == thread && matches!(event.what, What::Wake { .. })
                };
                part.events.iter().filter(wakes).count()
            };
            for event in &part.events {
                if let What::Wait { by: Some((thread, number)), .. } = event.what {
                    prop_assert!((number as usize) < wakes(thread));
                }
            }
        }
    }
}
