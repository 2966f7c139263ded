//! What is written is read.

use super::arbitrary;
use super::hostile::blocks;
use super::made::{Made, map, touch, unmap};
use proptest::prelude::*;
use recording::{
    Birth, End, Environment, Error, Event, Lost, Process, Reader, Recording, Thread, What, Writer,
};

/// The bytes of the recording's file.
pub fn written(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    recording.write(&mut bytes).expect("it can be written");
    bytes
}

proptest! {
    #[test]
    fn every_recording_comes_back(recording in arbitrary::recording()) {
        let bytes = written(&recording);
        let (found, end) = Recording::read(&bytes[..]).expect("it can be read");
        prop_assert_eq!(end, End::Whole);
        prop_assert_eq!(&found, &recording);
        let mut reader = Reader::new(&bytes[..]).expect("a head");
        let events: Result<Vec<Event>, Error> = reader.by_ref().collect();
        prop_assert_eq!(events.expect("events"), recording.events);
    }

    /// A file is readable up to its last whole block, wherever it ends.
    #[test]
    fn a_file_that_is_cut_off_has_what_came_before(
        recording in arbitrary::recording(),
        at in any::<prop::sample::Index>(),
    ) {
        let bytes = written(&recording);
        let cut = &bytes[..at.index(bytes.len())];
        match Recording::read(cut) {
            Ok((found, end)) => {
                let nanoseconds = found.events.last().map_or(0, |event| event.at);
                prop_assert_eq!(end, End::CutOff { nanoseconds });
                prop_assert_eq!(&found.events[..], &recording.events[..found.events.len()]);
                prop_assert_eq!(found.environment, recording.environment);
            }
            Err(error) => {
                let why = error.to_string();
                let short = ["not a recording of scalevm's", "it ends in its head"];
                prop_assert!(short.contains(&why.as_str()), "{}", why);
            }
        }
    }
}

/// A recording of four seconds, with an event each 100 ms.
fn four_seconds() -> Recording {
    let mut made = Made::new(&["main"]);
    made.call(0, 0, map(0, 1000));
    for tenth in 1..40 {
        made.event(tenth * 100_000, 0, touch(0, tenth, 1));
    }
    made.0
}

#[test]
fn each_second_is_on_the_disk() {
    let recording = four_seconds();
    let bytes = written(&recording);
    // The end is in the last block: a byte less, and that is not whole.
    let (found, end) = Recording::read(&bytes[..bytes.len() - 1]).expect("a part");
    assert!(found.events.len() >= 30, "{}", found.events.len());
    assert_eq!(
        end.to_string(),
        "cut off after 2.9 s: the end is missing",
        "{end:?}"
    );
}

#[test]
fn a_block_does_not_wait_for_the_end() {
    let mut file = Vec::new();
    let recording = four_seconds();
    let mut writer = Writer::new(&mut file, &recording.environment, 4096).expect("a writer");
    writer.process(0, &recording.processes[0]).expect("defined");
    writer.thread(0, &recording.threads[0]).expect("defined");
    writer.event(&recording.events[0]).expect("an event");
    writer.flush().expect("flushed");
    drop(writer);
    let (found, _) = Recording::read(&file[..]).expect("a part");
    assert_eq!(found.events, recording.events[..1]);
}

#[test]
fn the_last_definition_counts() {
    let mut file = Vec::new();
    let recording = four_seconds();
    let mut writer = Writer::new(&mut file, &recording.environment, 4096).expect("a writer");
    let process = |name: &str| Process {
        pid: 7,
        name: name.to_owned(),
        birth: Birth::Forked,
    };
    let thread = |name: &str| Thread {
        tid: 7,
        process: 0,
        name: name.to_owned(),
    };
    let lost = |records| Lost {
        records,
        unknown: 2,
        switches: records,
    };
    writer.process(0, &process("sh")).expect("defined");
    writer.thread(0, &thread("sh")).expect("defined");
    writer.cost(0.25).expect("a cost");
    writer.lost(lost(1)).expect("lost");
    writer.event(&recording.events[0]).expect("an event");
    writer.thread(0, &thread("cc1")).expect("renamed");
    writer.process(0, &process("cc1")).expect("renamed");
    writer.lost(lost(5)).expect("lost");
    writer.finish(9).expect("an end");
    let (found, _) = Recording::read(&file[..]).expect("a recording");
    assert_eq!(found.processes, [process("cc1")]);
    assert_eq!(found.threads, [thread("cc1")]);
    assert_eq!((found.lost, found.cost), (lost(5), Some(0.25)));
    assert_eq!(found.nanoseconds, 9);
}

/// What the writer says of an event.
fn refused(writer: &mut Writer<impl std::io::Write>, at: u64, thread: u32, what: What) -> String {
    let event = Event {
        at,
        thread,
        computed: 0,
        what,
    };
    match writer.event(&event) {
        Err(Error::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_writer_refuses_what_a_reader_would_and_goes_on() {
    let mut file = Vec::new();
    let recording = four_seconds();
    let mut writer = Writer::new(&mut file, &recording.environment, 4096).expect("a writer");
    assert_eq!(
        refused(&mut writer, 0, 0, What::Exit),
        "thread 0 is not defined"
    );
    let error = writer.thread(0, &recording.threads[0]).expect_err("none");
    assert_eq!(error.to_string(), "process 0 is not defined");
    writer.process(0, &recording.processes[0]).expect("defined");
    let error = writer.thread(2, &recording.threads[0]).expect_err("a gap");
    assert_eq!(error.to_string(), "thread 2 is defined, but not 0");
    writer.thread(0, &recording.threads[0]).expect("defined");
    writer.event(&recording.events[1]).expect_err("no mapping");
    for event in &recording.events {
        writer.event(event).expect("an event");
    }
    assert_eq!(
        refused(&mut writer, 5, 0, What::Exit),
        "5 ns comes after 3900000000 ns"
    );
    let call = unmap(1, 0, 1);
    assert_eq!(
        refused(&mut writer, 4_000_000_000, 0, What::Given { call }),
        "mapping 1 is not defined"
    );
    let call = map(1 << 31, 1);
    assert_eq!(
        refused(&mut writer, 4_000_000_000, 0, What::Given { call }),
        "mapping 2147483648: numbers are below 2147483648"
    );
    let long = Thread {
        name: "x".repeat(5 << 20),
        ..recording.threads[0].clone()
    };
    let error = writer.thread(0, &long).expect_err("too long");
    assert_eq!(error.to_string(), "one entry has more than 4194304 bytes");
    writer.finish(recording.nanoseconds).expect("an end");
    let (found, end) = Recording::read(&file[..]).expect("a recording");
    assert_eq!((found, end), (recording, End::Whole));
}

/// The bytes that docs/recording.md explains.
#[test]
fn the_format_is_what_the_page_says() {
    let mut made = Made::new(&["a"]);
    made.0.environment = Environment {
        kernel: "6.18".to_owned(),
        cpus: 2,
        ..Environment::default()
    };
    made.call(1, 0, map(0, 3))
        .event(3, 0, touch(0, 0, 2))
        .call(4, 0, unmap(0, 0, 3));
    let mut bytes = written(&made.0);
    let parts = blocks(&bytes);
    assert_eq!(parts.len(), 2);
    let head = b"\x01\x80\x20\x046.18\x02\x00\x00\x00\x00";
    assert_eq!(parts[0], head);
    let process = b"\x02\x00\x64\x06server\x00";
    let thread = b"\x03\x00\x64\x00\x01a";
    let toll = b"\x05\x00\x00\x00";
    let mapped = b"\x08\xe8\x07\xd0\x0f\x03\x07\x00";
    let touched = b"\x13\xd0\x0f\xd0\x0f\x00\x01\x11";
    let unmapped = b"\x09\xe8\x07\xd0\x0f\x00\x04\x01";
    let end = b"\x00\xa0\x1f";
    let entries: [&[u8]; 7] = [process, thread, toll, mapped, touched, unmapped, end];
    assert_eq!(parts[1], entries.concat());
    bytes.truncate(10);
    assert_eq!(bytes, b"\x8bvmrec\r\n\x01\x00");
}

#[test]
fn pages_have_a_size_that_pages_have() {
    for bad in [0, 1, 4095, 256, 1 << 31] {
        let recording = Recording {
            page: bad,
            ..Recording::default()
        };
        let error = recording.write(Vec::new()).expect_err("no page");
        assert_eq!(error.to_string(), format!("a page has {bad} bytes"));
    }
}
