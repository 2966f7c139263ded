//! Files as stores of pages: the conformance suite, and a file's own properties.

use hosted::{FilePager, Hosted};
use machine::{Frame, Memory, Ordering, PAGE_SIZE, Pager, conformance};
use std::io::Write;
use std::sync::Arc;

fn machine() -> Hosted {
    Hosted::with_memory(2, conformance::FRAMES * PAGE_SIZE).expect("memory")
}

#[test]
fn keeps_pages() {
    let pager = || Arc::new(FilePager::temporary().expect("a file"));
    conformance::pager(&machine(), pager());
    conformance::truncation(&machine(), pager());
}

/// The file's bytes are the pages', and the file ends with the last byte written.
#[test]
fn pages_are_bytes() {
    let machine = machine();
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(b"eight ch").expect("write");
    let pager = FilePager::new(file);
    // SAFETY: the frame is the test's.
    let word = |frame, index| unsafe { machine.word(frame, index) }.load(Ordering::Relaxed);
    let dirty = |frame| {
        // SAFETY: the frame is the test's.
        (0..512).for_each(|i| unsafe { machine.word(frame, i) }.store(1, Ordering::Relaxed))
    };
    [Frame(0), Frame(1)].into_iter().for_each(dirty);
    // SAFETY: the frames are the test's.
    unsafe { pager.read(&machine, 0, &[Frame(0), Frame(1)]) }.expect("read");
    assert_eq!(word(Frame(0), 0), u64::from_ne_bytes(*b"eight ch"));
    assert!((1..512).all(|i| word(Frame(0), i) == 0), "behind the end");
    assert!((0..512).all(|i| word(Frame(1), i) == 0), "behind the end");
    let frames = [Frame(0), Frame(1)];
    // SAFETY: the frames are the test's.
    unsafe { pager.write(&machine, 2, &frames, PAGE_SIZE + 5) }.expect("write");
    let length = pager.file().metadata().expect("metadata").len();
    assert_eq!(length as usize, 3 * PAGE_SIZE + 5);
}

/// More pages than one system call moves.
#[test]
fn many_pages_at_once() {
    const PAGES: usize = 1_500;
    let machine = Hosted::with_memory(1, PAGES * PAGE_SIZE).expect("memory");
    let pager = FilePager::temporary().expect("a file");
    // SAFETY: the frame is the test's.
    let word = |frame: Frame| unsafe { machine.word(frame, frame.index() % 512) };
    let frames: Vec<Frame> = (0..PAGES as u32).map(Frame).collect();
    let back: Vec<Frame> = frames.iter().rev().copied().collect();
    for &frame in &frames {
        word(frame).store(frame.0.into(), Ordering::Relaxed);
    }
    // SAFETY: the frames are the test's.
    unsafe { pager.write(&machine, 3, &back, PAGES * PAGE_SIZE) }.expect("write");
    // SAFETY: the frame is the test's.
    frames
        .iter()
        .for_each(|&frame| unsafe { machine.zero(frame) });
    // SAFETY: the frames are the test's.
    unsafe { pager.read(&machine, 3, &back) }.expect("read");
    let kept = |&frame: &Frame| word(frame).load(Ordering::Relaxed) == u64::from(frame.0);
    assert!(frames.iter().all(kept));
}
