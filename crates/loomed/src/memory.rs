//! Physical memory of loom atomics.

use crate::{Loomed, U64};
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::AtomicBool;
use machine::{Atomic, Frame, Memory, Ordering, PAGE_SIZE, WORDS_PER_FRAME};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Words one model may touch, in all its frames together.
const WORDS: usize = 96;
/// Words that a model with frames for a superpage may touch: also its entries and a word of each of
/// its pages.
const MANY_WORDS: usize = WORDS + 2 * WORDS_PER_FRAME;
/// Bytes at a frame's direct map: enough for a table of cells.
const ROOM: usize = 1 << 16;

/// The memory of one machine.
///
/// loom requires that every access is ordered after the creation of its atomic, and a frame's 512
/// atomics would be too many for it. So the thread that makes the machine creates a few, all 0, and
/// each word gets the next of them at its first touch.
pub(crate) struct Frames {
    count: usize,
    spare: Box<[U64]>,
    /// The index in `spare` of each touched word.
    names: Mutex<BTreeMap<(Frame, usize), usize>>,
    /// The bytes behind the direct map, apart from the words.
    pages: Mutex<BTreeMap<Frame, Box<Page>>>,
}

#[repr(align(4096))]
struct Page(UnsafeCell<[u8; ROOM]>);

// SAFETY: a page is only handed out as a raw pointer.
unsafe impl Send for Page {}
// SAFETY: a page is only handed out as a raw pointer.
unsafe impl Sync for Page {}

/// Locks a mutex that is not part of the model. Never held across an access that loom sees.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Frames {
    pub(crate) fn new(count: usize) -> Self {
        let words = match count {
            0 => 0,
            1..WORDS_PER_FRAME => WORDS,
            _ => MANY_WORDS,
        };
        Frames {
            count,
            spare: (0..words).map(|_| U64::new(0)).collect(),
            names: Mutex::default(),
            pages: Mutex::default(),
        }
    }

    /// The frame's `index`-th word.
    pub(crate) fn word(&self, frame: Frame, index: usize) -> &U64 {
        assert!(frame.index() < self.count, "no {frame:?}");
        assert!(index < WORDS_PER_FRAME, "no word {index} in a frame");
        let mut names = lock(&self.names);
        let next = names.len();
        let name = *names.entry((frame, index)).or_insert(next);
        assert!(
            name < self.spare.len(),
            "a model may touch {} words of memory at most",
            self.spare.len()
        );
        &self.spare[name]
    }

    /// The words of a frame that have been touched.
    fn touched(&self, frame: Frame) -> Vec<usize> {
        let range = (frame, 0)..(frame, WORDS_PER_FRAME);
        let names = lock(&self.names);
        names.range(range).map(|(&(_, index), _)| index).collect()
    }
}

// SAFETY: pages are boxed, aligned, one per frame, and kept until the machine's drop. `word` is
// separate from them: code that mixed both kinds of access on one frame would see two memories,
// which is why only owners of a frame, through `zero` and `copy`, have both.
unsafe impl Memory for Loomed {
    const ROOM: usize = ROOM;

    fn frame_end(&self) -> usize {
        self.inner.frames.count
    }

    fn usable(&self, each: &mut dyn FnMut(Range<u32>)) {
        if self.inner.frames.count > 0 {
            each(0..self.inner.frames.count as u32);
        }
    }

    fn owned(&self) -> &AtomicBool {
        &self.inner.owned
    }

    fn direct_map(&self, frame: Frame) -> NonNull<u8> {
        let frames = &self.inner.frames;
        assert!(frame.index() < frames.count, "no {frame:?}");
        let mut pages = lock(&frames.pages);
        let page = pages
            .entry(frame)
            .or_insert_with(|| Box::new(Page(UnsafeCell::new([0; ROOM]))));
        NonNull::new(page.0.get()).expect("a box").cast()
    }

    unsafe fn word(&self, frame: Frame, index: usize) -> &U64 {
        self.inner.frames.word(frame, index)
    }

    unsafe fn find_word(
        &self,
        frame: Frame,
        first: usize,
        end: usize,
        mask: u64,
    ) -> Option<(usize, u64)> {
        // Words that were never touched are 0, and stay untouched.
        let touched = self.inner.frames.touched(frame).into_iter();
        let mut inside = touched.filter(|index| (first..end).contains(index));
        inside.find_map(|index| {
            let value = self.inner.frames.word(frame, index).load(Ordering::Relaxed);
            (value & mask != 0).then_some((index, value))
        })
    }

    unsafe fn read_words(&self, frame: Frame, first: usize, words: &mut [[u8; 8]]) {
        let (touched, range) = (self.inner.frames.touched(frame), first..first + words.len());
        words.fill([0; 8]);
        for index in touched.into_iter().filter(|index| range.contains(index)) {
            let value = self.inner.frames.word(frame, index).load(Ordering::Relaxed);
            words[index - first] = value.to_ne_bytes();
        }
    }

    unsafe fn write_words(&self, frame: Frame, first: usize, words: &[[u8; 8]]) {
        let touched = self.inner.frames.touched(frame);
        for (index, &word) in (first..).zip(words) {
            let value = u64::from_ne_bytes(word);
            if value != 0 || touched.contains(&index) {
                self.inner
                    .frames
                    .word(frame, index)
                    .store(value, Ordering::Relaxed);
            }
        }
    }

    unsafe fn zero(&self, frame: Frame) {
        for index in self.inner.frames.touched(frame) {
            self.inner
                .frames
                .word(frame, index)
                .store(0, Ordering::Relaxed);
        }
        // SAFETY: the page is PAGE_SIZE bytes, and the caller's to touch.
        unsafe { self.direct_map(frame).write_bytes(0, PAGE_SIZE) };
    }

    unsafe fn copy(&self, from: Frame, to: Frame) {
        let frames = &self.inner.frames;
        for index in [frames.touched(from), frames.touched(to)].concat() {
            let value = frames.word(from, index).load(Ordering::Relaxed);
            frames.word(to, index).store(value, Ordering::Relaxed);
        }
        // SAFETY: both are PAGE_SIZE bytes and disjoint, and the caller's to touch.
        unsafe {
            let bytes = self.direct_map(from);
            self.direct_map(to)
                .copy_from_nonoverlapping(bytes, PAGE_SIZE);
        }
    }
}
