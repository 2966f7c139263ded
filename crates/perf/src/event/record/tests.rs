//! Hand-made records.

use super::*;
use crate::event::format::Field;

const CLOCK: u64 = 11;
const BEGIN: u64 = 12;
const END: u64 = 13;
const SWITCH: u64 = 14;
const ACQUIRE: u64 = 15;
const RELEASE: u64 = 16;
const WAKE: u64 = 17;

fn decoder() -> Decoder {
    let field = |size, offset: usize, signed: u8| {
        let format = format!("field:x f;\toffset:{offset};\tsize:{size};\tsigned:{signed};");
        Field::find(&format, "f").expect("a field")
    };
    Decoder {
        sources: HashMap::from([
            (CLOCK, Source::Clock),
            (BEGIN, Source::Begin),
            (END, Source::End),
            (SWITCH, Source::Switch),
            (ACQUIRE, Source::Acquire),
            (RELEASE, Source::Release),
            (WAKE, Source::Wake),
        ]),
        state: Some(field(8, 32, 1)),
        contention: Some(ContentionFields {
            begin_lock: field(8, 8, 0),
            begin_flags: field(4, 16, 0),
            end_lock: field(8, 8, 0),
        }),
        hold_fields: Some(HoldFields {
            acquired_space: field(8, 8, 0),
            write: field(1, 24, 0),
            success: field(1, 25, 0),
            released_space: field(8, 8, 0),
        }),
        woken: Some(field(4, 24, 1)),
        depth: 4,
    }
}

/// A record being built.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn text(mut self, text: &str) -> Self {
        self.0.extend(text.as_bytes());
        self.0.resize((self.0.len() / 8 + 1) * 8, 0);
        self
    }

    /// A sample of `id` at `time`, up to the stack.
    fn sample(id: u64, time: u64) -> Self {
        Bytes::default().u64(id).u32(7).u32(8).u64(time).u64(3)
    }

    fn chain(self, chain: &[u64]) -> Self {
        chain
            .iter()
            .fold(self.u64(chain.len() as u64), |bytes, &word| bytes.u64(word))
    }

    /// Two words on top of the user's stack, of three requested.
    fn top(self, words: [u64; 2]) -> Self {
        let registers =
            (0..REGISTERS.len() as u64).fold(self.u64(2), |bytes, at| bytes.u64(60 + at));
        registers
            .u64(24)
            .u64(words[0])
            .u64(words[1])
            .u64(99)
            .u64(16)
    }

    /// The trailer of records other than samples.
    fn at(self, time: u64) -> Self {
        self.u32(7).u32(8).u64(time).u64(3).u64(CLOCK)
    }

    fn record(self, kind: u32, misc: u16) -> Vec<u8> {
        let mut record = Vec::from(kind.to_ne_bytes());
        record.extend(misc.to_ne_bytes());
        record.extend((8 + self.0.len() as u16).to_ne_bytes());
        record.extend(self.0);
        record
    }
}

fn decode(records: &[u8]) -> Vec<Stamped> {
    let mut events = Vec::new();
    decoder().decode(records, |event| events.push(event));
    events
}

const THREAD: Thread = Thread { pid: 7, tid: 8 };

#[test]
fn a_sample_has_its_stack() {
    let record = Bytes::sample(CLOCK, 99)
        .chain(&[1, 2, 3])
        .top([77, 78])
        .record(sys::PERF_RECORD_SAMPLE, 0);
    let event = Event::Sample {
        thread: THREAD,
        cpu: 3,
        chain: Chain {
            addresses: [1, 2, 3].into(),
            registers: Some(Registers {
                argument: 60,
                frame: 61,
                link: (REGISTERS.len() == 4).then_some(62),
                stack: 59 + REGISTERS.len() as u64,
            }),
            top: [77, 78].into(),
            cut: false,
        },
    };
    assert_eq!(decode(&record), [Stamped { time: 99, event }]);
}

#[test]
fn tracepoints_have_their_fields() {
    let begin = Bytes::sample(BEGIN, 1).chain(&[5]);
    let begin = begin
        .u32(20)
        .u64(0)
        .u64(0xabc)
        .u32(33)
        .u64(0)
        .u64(0)
        .record(sys::PERF_RECORD_SAMPLE, 0);
    let end = Bytes::sample(END, 2).u32(20).u64(0).u64(0xabc).u32(0);
    let end = end.record(sys::PERF_RECORD_SAMPLE, 0);
    let switch = Bytes::sample(SWITCH, 3)
        .chain(&[])
        .u32(64)
        .u64(0)
        .u64(0)
        .u64(0);
    let switch = switch
        .u32(8)
        .u32(120)
        .u64(0x102)
        .u64(0)
        .u64(0)
        .u32(9)
        .u32(120)
        .u64(0)
        .u64(0);
    let switch = switch.record(sys::PERF_RECORD_SAMPLE, 0);
    let events: Vec<Event> = decode(&[begin, end, switch].concat())
        .into_iter()
        .map(|one| one.event)
        .collect();
    let expected = [
        Event::Begin {
            thread: THREAD,
            lock: 0xabc,
            flags: 33,
            chain: [5].into(),
        },
        Event::End {
            thread: THREAD,
            lock: 0xabc,
        },
        Event::Leave {
            thread: THREAD,
            state: 0x102,
            chain: [].into(),
        },
    ];
    assert_eq!(events, expected);
}

/// A record of an acquisition at 4.
fn acquire(write: u8, success: u8) -> Vec<u8> {
    let flags = u32::from_ne_bytes([write, success, 0, 0]);
    let raw = Bytes::sample(ACQUIRE, 4).chain(&[5, 6]).u32(28);
    let raw = raw.u64(0).u64(0xabc).u64(1).u32(flags);
    raw.record(sys::PERF_RECORD_SAMPLE, 0)
}

#[test]
fn holds_have_their_address_space() {
    let release = Bytes::sample(RELEASE, 6).u32(28).u64(0).u64(0xabc).u64(1);
    let release = release.u32(1).record(sys::PERF_RECORD_SAMPLE, 0);
    let lost = Bytes::default().u64(ACQUIRE).u64(3).at(7);
    let lost = lost.record(sys::PERF_RECORD_LOST, 0);
    let events = decode(&[acquire(0, 1), acquire(1, 0), release, lost].concat());
    let events: Vec<Event> = events.into_iter().map(|one| one.event).collect();
    let (thread, space) = (THREAD, 0xabc);
    let acquired = Event::Acquire {
        thread,
        space,
        write: false,
        chain: [5, 6].into(),
    };
    // One that failed holds nothing.
    let expected = [acquired, Event::Release { thread, space }, Event::LostHolds];
    assert_eq!(events, expected);
    let written = decode(&acquire(1, 1)).remove(0).event;
    assert!(matches!(written, Event::Acquire { write: true, .. }));
}

#[test]
fn a_wake_up_says_who_is_woken() {
    let wake = Bytes::sample(WAKE, 6).chain(&[5]).u32(28);
    let wake = wake.u64(0).u64(0).u64(0).u32(21).u64(0).u64(0);
    let woken = decode(&wake.record(sys::PERF_RECORD_SAMPLE, 0));
    let event = Event::Wake {
        thread: THREAD,
        woken: 21,
        chain: [5].into(),
    };
    assert_eq!(woken, [Stamped { time: 6, event }]);
}

#[test]
fn a_thread_goes_off_its_cpu_and_comes_back() {
    let other = || Bytes::default().u32(20).u32(21);
    let kind = sys::PERF_RECORD_SWITCH_CPU_WIDE;
    let out = sys::PERF_RECORD_MISC_SWITCH_OUT as u16;
    let preempted = out | sys::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT as u16;
    let records = [
        other().at(4).record(kind, 0),
        other().at(5).record(kind, out),
        other().at(6).record(kind, preempted),
    ];
    let off = |preempted| Event::Off {
        thread: THREAD,
        preempted,
    };
    let expected = [
        (4, Event::Resume { thread: THREAD }),
        (5, off(false)),
        (6, off(true)),
    ];
    assert_eq!(
        decode(&records.concat()),
        expected.map(|(time, event)| Stamped { time, event })
    );
}

#[test]
fn tasks_and_their_memory_are_followed() {
    let fork = Bytes::default().u32(20).u32(7).u32(21).u32(8).u64(4);
    let comm = Bytes::default().u32(20).u32(21).text("sh");
    let map = Bytes::default()
        .u32(20)
        .u32(21)
        .u64(0x1000)
        .u64(0x200)
        .u64(0x40);
    let map = map.u64(0).u64(0).u64(0).u64(0).text("/bin/sh");
    let exec = sys::PERF_RECORD_MISC_COMM_EXEC as u16;
    let records = [
        fork.at(4).record(sys::PERF_RECORD_FORK, 0),
        comm.at(5).record(sys::PERF_RECORD_COMM, exec),
        map.at(6).record(sys::PERF_RECORD_MMAP2, 2),
    ]
    .concat();
    let child = Thread { pid: 20, tid: 21 };
    let mapping = Mapping {
        start: 0x1000,
        end: 0x1200,
        offset: 0x40,
        path: "/bin/sh".into(),
    };
    let expected = [
        (
            4,
            Event::Fork {
                child,
                parent: THREAD,
            },
        ),
        (
            5,
            Event::Comm {
                thread: child,
                name: "sh".into(),
                exec: true,
            },
        ),
        (6, Event::Map { pid: 20, mapping }),
    ];
    assert_eq!(
        decode(&records),
        expected.map(|(time, event)| Stamped { time, event })
    );
}

#[test]
fn what_was_lost_is_counted() {
    let lost = Bytes::default()
        .u64(CLOCK)
        .u64(17)
        .at(9)
        .record(sys::PERF_RECORD_LOST, 0);
    assert_eq!(
        decode(&lost),
        [Stamped {
            time: 9,
            event: Event::Lost(17)
        }]
    );
}

#[test]
fn what_is_not_understood_is_passed_over() {
    let unknown = Bytes::default().u64(1).at(1).record(77, 0);
    let foreign = Bytes::sample(99, 1)
        .chain(&[1])
        .u64(0)
        .record(sys::PERF_RECORD_SAMPLE, 0);
    let liar = Bytes::sample(CLOCK, 1)
        .u64(1 << 60)
        .record(sys::PERF_RECORD_SAMPLE, 0);
    let good = Bytes::sample(CLOCK, 2)
        .chain(&[])
        .u64(0)
        .u64(0)
        .record(sys::PERF_RECORD_SAMPLE, 0);
    let mut records = [unknown, foreign, liar, good].concat();
    records.extend([9, 0, 0, 0, 0, 0, 255, 255, 1]); // Cut off.
    assert_eq!(decode(&records).len(), 1);
}

#[test]
fn an_empty_record_does_not_hang() {
    assert_eq!(decode(&[0; 16]), []);
}

#[test]
fn a_stack_as_deep_as_may_be_is_cut() {
    const KERNEL: u64 = sys::PERF_CONTEXT_KERNEL;
    const USER: u64 = sys::PERF_CONTEXT_USER;
    let decoder = decoder();
    let whole = [KERNEL, 1, 2, USER, 3];
    assert!(!decoder.cuts(Source::Clock, &whole));
    let deep = [KERNEL, 1, 2, USER, 3, 4];
    assert!(decoder.cuts(Source::Clock, &deep));
    assert!(
        !decoder.cuts(Source::Begin, &deep),
        "it has a depth of its own"
    );
    let traced: Vec<u64> = (0..u64::from(TRACED_DEPTH)).collect();
    assert!(decoder.cuts(Source::Switch, &traced));
}
