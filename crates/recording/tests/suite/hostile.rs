//! Files that nobody has written give one line that says what is wrong and where.

use super::file::written;
use super::made::{Made, map, touch, unmap};
use flate2::Crc;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use proptest::prelude::*;
use recording::{Recording, What};
use std::io::{Read, Write};

/// The bytes before the first block, and those of a block before what it stores.
const BEGIN: usize = 10;
const HEAD: usize = 12;

/// A small recording with a call, a fault, a wait and a file.
fn sample() -> Recording {
    let mut made = Made::new(&["main", "worker-1"]);
    for loop_number in 0..20 {
        let at = u64::from(loop_number) * 10;
        made.call(at, 0, map(loop_number, 8))
            .event(at + 1, 0, touch(loop_number, 0, 8))
            .event(at + 2, 0, What::Wake { thread: 1 })
            .call(at + 3, 1, unmap(loop_number, 0, 8));
    }
    made.0
}

/// What reading says, which must be one line.
fn error(bytes: &[u8]) -> String {
    let error = Recording::read(bytes).expect_err("it is damaged");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// A block that stands for `raw`, as it should be.
fn block(raw: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(raw).expect("memory");
    stored(&encoder.finish().expect("memory"), raw.len() as u32)
}

/// A block that stores these bytes and claims to stand for this many.
fn stored(stored: &[u8], raw: u32) -> Vec<u8> {
    let mut bytes = (stored.len() as u32).to_le_bytes().to_vec();
    bytes.extend(raw.to_le_bytes());
    let mut crc = Crc::new();
    crc.update(&bytes);
    crc.update(stored);
    bytes.extend(crc.sum().to_le_bytes());
    bytes.extend(stored);
    bytes
}

/// The blocks of a file, as what they stand for.
pub fn blocks(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut blocks) = (&bytes[BEGIN..], Vec::new());
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        let (block, after) = rest.split_at(HEAD + length);
        let mut raw = Vec::new();
        let mut decoder = DeflateDecoder::new(&block[HEAD..]);
        decoder.read_to_end(&mut raw).expect("deflated");
        blocks.push(raw);
        rest = after;
    }
    blocks
}

/// The sample's head, and then a block that stands for `raw`.
fn with_block(raw: &[u8]) -> Vec<u8> {
    with_bytes(&block(raw))
}

fn with_bytes(more: &[u8]) -> Vec<u8> {
    let bytes = written(&sample());
    let head = block(&blocks(&bytes)[0]);
    [&bytes[..BEGIN], &head, more].concat()
}

#[test]
fn other_files_are_named() {
    assert_eq!(error(b""), "not a recording of scalevm's");
    assert_eq!(error(b"PERFILE2 and more"), "not a recording of scalevm's");
    let zeros = std::io::repeat(0).take(100 << 30);
    let text = Recording::read(zeros).expect_err("zeros").to_string();
    assert_eq!(text, "not a recording of scalevm's");
    let mut bytes = written(&sample());
    assert_eq!(error(&bytes[..9]), "it ends in its head");
    assert_eq!(error(&bytes[..20]), "it ends in its head");
    bytes[8] = 7;
    assert_eq!(
        error(&bytes),
        "version 7 of the format; version 1 can be read"
    );
}

#[test]
fn blocks_that_lie_are_named() {
    let begin = with_bytes(&[]).len();
    let place = format!("block 1 (byte {begin}): ");
    let why = |more: &[u8]| {
        let text = error(&with_bytes(more));
        let why = text.strip_prefix(&place);
        why.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let huge = [&[0xff; 8][..], &[0; 4]].concat();
    assert_eq!(why(&huge), "4294967295 bytes cannot stand for 4294967295");
    // A bomb: more than a block may stand for, and more than its length allows.
    let zeros = vec![0; 4 << 20];
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&zeros).expect("memory");
    let bomb = encoder.finish().expect("memory");
    assert!(bomb.len() < 8192, "{}", bomb.len());
    let claims = |raw: u32| why(&stored(&bomb, raw));
    let length = bomb.len();
    assert_eq!(
        claims(4 << 20),
        format!("{length} bytes cannot stand for {}", 4 << 20)
    );
    assert_eq!(claims(1 << 16), "it cannot be inflated");
    assert_eq!(
        claims(1 << 30),
        format!("{length} bytes cannot stand for {}", 1 << 30)
    );
    assert_eq!(why(&stored(b"no deflate", 20)), "it cannot be inflated");
    assert_eq!(
        why(&stored(b"", 0)),
        "0 bytes cannot stand for 0",
        "zeros after the head"
    );
    let mut flipped = block(&[0, 0]);
    flipped[HEAD] ^= 1;
    assert_eq!(why(&flipped), "the checksum does not match");
}

/// What is said of a block with these entries after the head.
fn of_entries(raw: &[u8]) -> String {
    let text = error(&with_block(raw));
    text.split_once("): ").expect("a place").1.to_owned()
}

#[test]
fn entries_that_lie_are_named() {
    // A process and a thread of it.
    const KNOWN: [u8; 9] = [2, 0, 1, 0, 0, 3, 0, 1, 0];
    let known = |more: &[u8]| of_entries(&[&KNOWN[..], &[0], more].concat());
    let at = "its entry at 10: ";
    assert_eq!(
        of_entries(&[3, 0, 1, 0, 0]),
        "its entry at 0: process 0 is not defined"
    );
    assert_eq!(of_entries(&[63]), "its entry at 0: no entry begins with 63");
    assert_eq!(
        of_entries(&[2, 9, 1, 0, 0]),
        "its entry at 0: process 9 is defined, but not 0"
    );
    assert_eq!(
        of_entries(&[2, 0, 1, 0, 3]),
        "its entry at 0: a choice is 3 of 3"
    );
    assert_eq!(
        of_entries(&[2, 0, 1, 200, 1, b'x']),
        "its entry at 0: the block ends in a text"
    );
    assert_eq!(of_entries(&[1, 128, 64, 0, 0, 0, 0, 0, 0]), "a second head");
    assert_eq!(of_entries(&[0, 0, 0]), "more follows after the end");
    // Another thread exits, at time 0 after computing 0 ns.
    assert_eq!(
        known(&[0x80 | 23, 1, 0, 0]),
        format!("{at}thread 1 is not defined")
    );
    // A fault in mapping 2.
    assert_eq!(
        known(&[19, 0, 0, 4, 1, 8]),
        format!("{at}mapping 2 is not defined")
    );
    // A mapping of file 5.
    assert_eq!(
        known(&[8, 0, 0, 0x13, 1, 5, 1, 0]),
        format!("{at}file 5 is not defined")
    );
    // It holds the lock of process 1.
    assert_eq!(
        known(&[26, 0, 0, 1, 0, 0]),
        format!("{at}process 1 is not defined")
    );
    // A wake-up of thread 3, a call with more where there is none, and a given call of no kind.
    assert_eq!(
        known(&[25, 0, 0, 3]),
        format!("{at}thread 3 is not defined")
    );
    assert_eq!(
        known(&[0x40 | 25, 0, 0, 0]),
        format!("{at}no entry begins with 89")
    );
    assert_eq!(
        known(&[7, 0, 0, 60]),
        format!("{at}no call has the kind 60")
    );
    // Parts without end.
    let many = [0x40 | 18, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(known(&many), format!("{at}the block ends in it"));
    // Time that overflows, and time that goes back.
    let late = [
        23, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0,
    ];
    assert_eq!(
        known(&[&late[..], &[23, 1, 0]].concat()),
        "its entry at 22: a time overflows"
    );
    assert_eq!(
        known(&[&[23, 9, 0], &[0, 3][..]].concat()),
        "its entry at 13: 3 ns comes after 9 ns"
    );
    let nan = [&[5, 0, 0, 1][..], &[0x80; 6], &[0x80, 0x80, 0xfc, 0xff, 1]].concat();
    assert!(known(&nan).starts_with(at), "{}", known(&nan));
}

#[test]
fn nothing_follows_after_the_end() {
    let mut bytes = written(&sample());
    bytes.push(0);
    assert!(
        error(&bytes).ends_with("): more follows after the end"),
        "{}",
        error(&bytes)
    );
}

/// A reader that gives one byte at a time, as a pipe may.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(1);
        self.0.read(&mut into[..length])
    }
}

#[test]
fn a_pipe_gives_what_a_file_does() {
    let recording = sample();
    let bytes = written(&recording);
    let (found, _) = Recording::read(Slow(&bytes)).expect("it can be read");
    assert_eq!(found, recording);
}

proptest! {
    /// Flipped, overwritten, removed and inserted bytes: no panic, and no other recording, as the
    /// checksum finds it.
    #[test]
    fn a_damaged_file_gives_what_is_true_or_an_error(
        at in any::<prop::sample::Index>(),
        damage in 0..4_u8,
        byte: u8,
    ) {
        let recording = sample();
        let mut bytes = written(&recording);
        let at = at.index(bytes.len());
        match damage {
            0 => bytes[at] ^= 1 << (byte % 8),
            1 => bytes[at] = byte,
            2 => drop(bytes.drain(at..(at + 1 + usize::from(byte % 9)).min(bytes.len()))),
            _ => bytes.insert(at, byte),
        }
        match Recording::read(&bytes[..]) {
            Ok((found, _)) => {
                prop_assert_eq!(&found.events[..], &recording.events[..found.events.len()]);
            }
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }

    /// Damaged entries in blocks with good checksums: no panic, one line, and what is read can be
    /// written.
    #[test]
    fn damaged_entries_give_a_recording_or_an_error(
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let bytes = written(&sample());
        let parts = blocks(&bytes);
        let mut raw = parts[1..].concat();
        for (at, byte) in damages {
            let at = at.index(raw.len());
            raw[at] = byte;
        }
        if is_cut {
            raw.truncate(1 + cut.index(raw.len()));
        }
        match Recording::read(&with_block(&raw)[..]) {
            Ok((found, _)) => {
                let again = Recording::read(&written(&found)[..]).expect("it can be read");
                prop_assert_eq!(again.0, found);
            }
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
