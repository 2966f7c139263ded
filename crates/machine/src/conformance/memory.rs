//! Physical memory.

use super::alone;
use super::owned::Owned;
use super::tables::{FRAMES, frame};
use crate::{Atomic, Execute, Frame, Memory, Ordering, PAGE_SIZE, Platform, WORDS_PER_FRAME};
use core::slice;

/// Frames are aligned, disjoint and of the promised size; they are zeroed and copied whole.
pub fn memory<M: Execute + Platform + Clone>(m: &M) {
    let mut first = 0..0;
    m.usable(&mut |range| {
        if first.is_empty() {
            first = range;
        }
    });
    assert!(first.len() >= FRAMES, "too few frames for the suite");
    alone(m, |m| {
        words(m);
        search(m);
        bytes(m);
        parts(m);
    });
}

/// The frames handed over ascend, lie apart, have numbers below the end, and are memory, up to the
/// ends of each range.
pub fn usable<M: Execute + Platform + Clone>(m: &M) {
    assert!(m.frame_end() <= u32::MAX as usize, "too many frames");
    alone(m, |m| {
        let mut past = 0;
        m.usable(&mut |range| {
            assert!(range.start < range.end, "{range:?} is empty");
            let apart = range.start > past || past == 0;
            assert!(apart, "{range:?} does not lie behind {past}");
            assert!(range.end as usize <= m.frame_end(), "{range:?} is too high");
            past = range.end;
            for frame in [Frame(range.start), Frame(range.end - 1)] {
                let word = m.word(frame, WORDS_PER_FRAME - 1);
                let before = word.load(Ordering::Relaxed);
                word.store(!before, Ordering::Relaxed);
                assert_eq!(word.load(Ordering::Relaxed), !before, "{frame:?}");
                word.store(before, Ordering::Relaxed);
            }
        });
    });
}

/// The words of a frame that are tried: both ends and one between.
const TRIED: [usize; 3] = [0, 100, WORDS_PER_FRAME - 1];

/// `find_word` agrees with a search word by word.
fn search<M: Memory>(m: &Owned<M>) {
    let frame = frame(m, 0);
    for (index, value) in [(98, 0), (99, 4), (100, 2), (101, 6)] {
        m.word(frame, index).store(value, Ordering::Relaxed);
    }
    assert_eq!(m.find_word(frame, 98, 102, 2), Some((100, 2)));
    assert_eq!(m.find_word(frame, 98, 102, 4), Some((99, 4)));
    assert_eq!(
        m.find_word(frame, 100, 102, 4),
        Some((101, 6)),
        "from the middle"
    );
    assert_eq!(m.find_word(frame, 98, 100, 2), None, "beyond the end");
    assert_eq!(m.find_word(frame, 100, 100, 2), None, "no words");
}

fn words<M: Memory>(m: &Owned<M>) {
    let [a, b] = [frame(m, 0), frame(m, 1)];
    let value = |frame: Frame, index| m.word(frame, index).load(Ordering::Relaxed);
    for (frame, first) in [(a, 1_000), (b, 2_000)] {
        for index in TRIED {
            let value = first + index as u64;
            m.word(frame, index).store(value, Ordering::Relaxed);
        }
    }
    for index in TRIED {
        assert_eq!(value(a, index), 1_000 + index as u64, "word {index}");
        assert_eq!(value(b, index), 2_000 + index as u64, "word {index}");
    }
    m.copy(a, b);
    assert!(TRIED.iter().all(|&i| value(b, i) == value(a, i)), "copy");
    m.zero(a);
    assert!(TRIED.iter().all(|&i| value(a, i) == 0), "zero");
    assert!(TRIED.iter().all(|&i| value(b, i) != 0), "zero of another");
    m.zero(b);
}

fn bytes<M: Memory>(m: &Owned<M>) {
    let at = |index| frame(m, index);
    // SAFETY: the frames are the suite's, and one slice at a time is used.
    let bytes = |frame: u32| unsafe {
        slice::from_raw_parts_mut(m.direct_map(at(frame)).as_ptr(), PAGE_SIZE)
    };
    for frame in [0, 1, 2] {
        let start = m.direct_map(at(frame)).addr().get();
        assert_eq!(start % PAGE_SIZE, 0, "a frame is not aligned");
        bytes(frame).fill(frame as u8 + 1);
    }
    for frame in [0, 1, 2] {
        let own = |&byte: &u8| byte == frame as u8 + 1;
        assert!(bytes(frame).iter().all(own), "frames overlap");
    }
    m.copy(at(0), at(1));
    assert!(bytes(1).iter().all(|&byte| byte == 1), "copy");
    for frame in [0, 1] {
        m.zero(at(frame));
        assert!(bytes(frame).iter().all(|&byte| byte == 0), "zero");
    }
    assert!(bytes(2).iter().all(|&byte| byte == 3), "zero of another");
    m.zero(at(2));
}

/// Bytes go to words and come back, in the order of memory, and their neighbours stay.
fn parts<M: Memory>(m: &Owned<M>) {
    let frame = frame(m, 0);
    let word = |index| m.word(frame, index);
    // Within a word; the end of one and the beginning of the next; with a whole one between; to
    // the frame's end.
    for (at, count) in [(801, 3), (805, 6), (805, 14), (800, 16), (PAGE_SIZE - 9, 9)] {
        let (first, last) = (at / 8, (at + count - 1) / 8);
        for index in first..=last {
            word(index).store(u64::MAX, Ordering::Relaxed);
        }
        let some: [u8; 16] = core::array::from_fn(|index| index as u8 + 1);
        m.write_bytes(frame, at, &some[..count]);
        for byte in first * 8..last * 8 + 8 {
            let bytes = word(byte / 8).load(Ordering::Relaxed).to_ne_bytes();
            let inside = byte.checked_sub(at).filter(|&index| index < count);
            let expected = inside.map_or(0xff, |index| some[index]);
            assert_eq!(
                bytes[byte % 8],
                expected,
                "byte {byte} of {count} from {at}"
            );
        }
        let mut back = [0; 16];
        m.read_bytes(frame, at, &mut back[..count]);
        assert_eq!(back[..count], some[..count], "{count} bytes from {at}");
    }
    // A page, mostly of zeroes.
    word(1).store(9, Ordering::Relaxed);
    let mut page = [0; PAGE_SIZE];
    (page[0], page[PAGE_SIZE - 1]) = (5, 6);
    m.write_bytes(frame, 0, &page);
    assert_eq!(
        word(1).load(Ordering::Relaxed),
        0,
        "a page is written whole"
    );
    let mut back = [7; PAGE_SIZE];
    m.read_bytes(frame, 0, &mut back);
    assert!(back == page, "a page comes back");
    m.read_bytes(frame, 3, &mut []);
    m.write_bytes(frame, 3, &[]);
    m.zero(frame);
}
