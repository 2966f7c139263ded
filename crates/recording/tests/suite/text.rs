//! Events as lines.

use super::made::{map, place};
use recording::{Advice, Call, Event, FaultKind, Prot, Sharing, WaitFor, What};

/// The line of what thread 3 did.
fn line(what: What) -> String {
    let event = Event {
        at: 12_000_000_345,
        thread: 3,
        computed: 250,
        what,
    };
    let line = event.to_string();
    let rest = line.strip_prefix("12.000000345 t3 +250 ");
    rest.expect("time, thread and computing").to_owned()
}

fn call(call: Call) -> String {
    line(What::Call {
        call,
        error: 0,
        parts: Vec::new(),
    })
}

#[test]
fn calls_have_a_place_a_length_and_a_result() {
    let file = Call::Map {
        mapping: 7,
        length: 5000,
        prot: Prot {
            read: true,
            write: false,
            execute: true,
        },
        sharing: Sharing::Shared,
        file: Some((2, 8192)),
        over: Some(place(1, 2)),
        populate: true,
        no_reserve: true,
        huge: true,
    };
    assert_eq!(
        call(file),
        "mmap m7 5000 r-x shared f2+0x2000 over m1+0x2000 populate noreserve huge = 0"
    );
    assert_eq!(call(map(0, 1)), "mmap m0 4096 rw- private = 0");
    let (at, length) = (place(1, 2), 4096);
    let advice = Advice::Discard;
    assert_eq!(
        call(Call::Advise { at, length, advice }),
        "madvise m1+0x2000 4096 Discard = 0"
    );
    let remap = |to| Call::Remap {
        at,
        length,
        new_length: 8192,
        to,
    };
    assert_eq!(call(remap(Some(9))), "mremap m1+0x2000 4096 to 8192 m9 = 0");
    assert_eq!(call(remap(None)), "mremap m1+0x2000 4096 to 8192 = 0");
    assert_eq!(call(Call::Other { number: 25 }), "other 25 = 0");
    let failed = What::Call {
        call: Call::Unmap { at, length },
        error: 12,
        parts: vec![(place(4, 0), 4096)],
    };
    assert_eq!(line(failed), "munmap m1+0x2000 4096 and m4+0x0 4096 = -12");
}

#[test]
fn other_events_have_their_words() {
    let fault = What::Fault {
        at: place(1, 2),
        pages: 3,
        write: false,
        kind: FaultKind::Protected,
        in_kernel: true,
    };
    assert_eq!(
        line(fault),
        "fault m1+0x2000 pages 3 read protected in-kernel"
    );
    let wait = |by| What::Wait {
        on: WaitFor::Pipe,
        nanoseconds: 70,
        by,
    };
    assert_eq!(line(wait(None)), "wait pipe 70 ns");
    assert_eq!(line(wait(Some((1, 5)))), "wait pipe 70 ns by t1 wake 5");
    let fork = What::Fork {
        thread: 4,
        borrows: true,
    };
    assert_eq!(line(fork), "fork t4 borrows");
    let hold = What::Hold {
        process: 2,
        write: true,
        nanoseconds: 9,
    };
    assert_eq!(line(hold), "hold p2 write 9 ns");
}
