//! Physical memory: frames in the machine's window.

use crate::Sim;
use crate::engine::sampler::Spent;
use crate::engine::{self, Engine, Kind, Shared, Time};
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use machine::{Atomic, Atomics, Frame, Memory, PAGE_SIZE, WORDS_PER_FRAME};

const WORDS_PER_LINE: usize = 8;

impl Sim {
    fn words(&self, frame: Frame) -> &[AtomicU64; WORDS_PER_FRAME] {
        // SAFETY: a frame consists of this many aligned words, shared only as atomics, and lives as
        // long as the machine.
        unsafe { self.direct_map(frame).cast().as_ref() }
    }
}

// SAFETY: frames are disjoint page-aligned parts of the window, which lives as long as the machine,
// and `word` points into them.
unsafe impl Memory for Sim {
    fn frame_end(&self) -> usize {
        self.inner.frame_count
    }

    fn usable(&self, each: &mut dyn FnMut(Range<u32>)) {
        if self.inner.frame_count > 0 {
            each(0..self.inner.frame_count as u32);
        }
    }

    fn owned(&self) -> &AtomicBool {
        &self.inner.owned
    }

    fn direct_map(&self, frame: Frame) -> NonNull<u8> {
        assert!(
            frame.index() < self.inner.frame_count,
            "no {frame:?} in this machine"
        );
        // SAFETY: the frame lies in the window.
        unsafe { self.inner.frames.add(frame.index() * PAGE_SIZE) }
    }

    unsafe fn word(&self, frame: Frame, index: usize) -> &<Self as Atomics>::AtomicU64 {
        assert!(index < WORDS_PER_FRAME, "no word {index} in a frame");
        // SAFETY: the word lies in the frame, and a modelled atomic has the layout of a real one.
        unsafe { self.direct_map(frame).cast().add(index).as_ref() }
    }

    unsafe fn find_word(
        &self,
        frame: Frame,
        first: usize,
        end: usize,
        mask: u64,
    ) -> Option<(usize, u64)> {
        let words = self.words(frame);
        (first..end).find_map(|index| {
            if index == first || index % WORDS_PER_LINE == 0 {
                engine::touch(Shared::of(&words[index]), Kind::Load);
            }
            let value = words[index].load(Ordering::Relaxed);
            (value & mask != 0).then_some((index, value))
        })
    }

    unsafe fn read_words(&self, frame: Frame, first: usize, words: &mut [[u8; 8]]) {
        let from = &self.words(frame)[first..first + words.len()];
        for (index, (from, to)) in from.iter().zip(words).enumerate() {
            touch_line(index, first, from);
            *to = from.load(Ordering::Relaxed).to_ne_bytes();
        }
    }

    unsafe fn write_words(&self, frame: Frame, first: usize, words: &[[u8; 8]]) {
        let old = &self.words(frame)[first..first + words.len()];
        for (index, (old, &new)) in old.iter().zip(words).enumerate() {
            touch_line(index, first, old);
            let new = u64::from_ne_bytes(new);
            // Most copied words are zero and were so before, so an access for each would cost too
            // much.
            if old.load(Ordering::Relaxed) != new {
                // SAFETY: so says the caller.
                unsafe { self.word(frame, first + index) }.store(new, Ordering::Relaxed);
            }
        }
    }

    unsafe fn zero(&self, frame: Frame) {
        self.charge_page(frame, |engine| engine.profile.memory.zero_page);
        // Words that are already zero are not written: the host need not give them memory.
        let words = self.words(frame).iter();
        words
            .filter(|word| word.load(Ordering::Relaxed) != 0)
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }

    unsafe fn copy(&self, from: Frame, to: Frame) {
        self.charge_page(to, |engine| engine.profile.memory.copy_page);
        let pairs = self.words(from).iter().zip(self.words(to));
        pairs.for_each(|(from, to)| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
    }

    fn allocated(&self, frame: Frame) {
        self.with_engine(|engine| engine.oracle.allocated(frame));
    }

    fn freed(&self, frame: Frame) {
        engine::deallocation();
        self.with_engine(|engine| engine.oracle.freed(frame));
    }
}

/// Charges an access to word `index` of those from the `first` of a frame on, once for each cache
/// line.
fn touch_line(index: usize, first: usize, word: &AtomicU64) {
    if index == 0 || (first + index).is_multiple_of(WORDS_PER_LINE) {
        engine::touch(Shared::of(word), Kind::Load);
    }
}

impl Sim {
    /// Charges the calling CPU `cost` for overwriting a page, and the wait for its socket's memory.
    /// Costs nothing outside the machine's CPUs.
    fn charge_page(&self, frame: Frame, cost: impl FnOnce(&Engine) -> Time) {
        let first = self.direct_map(frame).as_ptr() as usize;
        if let Some(running) = engine::in_turn() {
            running.with(|engine| {
                engine.overwrite_page(first);
                engine.spend(cost(engine));
            });
        }
    }
}

impl Engine {
    /// Overwrites the page at `first` for the running CPU, when its socket's memory is ready for
    /// it.
    fn overwrite_page(&mut self, first: usize) {
        let cpu = self.running;
        let socket = self.profile.place(cpu).socket;
        let now = self.cpu().clock;
        let begin = now.max(self.zeroing[socket]);
        // Gigabytes per second are bytes per nanosecond.
        let share = PAGE_SIZE as f64 / self.profile.memory.zero_socket_gbps * 1000.0;
        self.zeroing[socket] = begin + share as Time;
        if begin > now {
            self.charge(Spent::Working, None);
            let cpu = self.cpu();
            cpu.clock = begin;
            cpu.times.memory += begin - now;
            self.charge(Spent::Memory, None);
        }
        for line in (first..first + PAGE_SIZE).step_by(64) {
            let line = self.directory.line_of(line);
            self.directory.seize(line, cpu);
        }
    }
}
