//! The pages a [`super::MemoryPager`] keeps, sparse.

use crate::error::Error;
use crate::heap::filled;
use alloc::boxed::Box;
use alloc::vec::Vec;
use machine::{Atomic, Frame, Memory, Ordering, PAGE_SIZE, WORDS_PER_FRAME};

/// Pages in a chunk.
pub(super) const CHUNK: u64 = 32;

type Page = Box<[u64]>;

/// Chunks of neighbouring pages, by number.
#[derive(Default)]
pub(super) struct Sheet {
    chunks: Vec<(u64, Box<[Option<Page>]>)>,
}

impl Sheet {
    /// Fills `frame` with a page.
    pub(super) fn read<M: Memory>(&self, machine: &M, number: u64, frame: Frame) {
        machine.zero(frame);
        let Some(page) = self.get(number) else {
            return;
        };
        for (index, &word) in page.iter().enumerate().filter(|(_, word)| **word != 0) {
            // Relaxed: the frame is the caller's, which publishes it.
            machine.word(frame, index).store(word, Ordering::Relaxed);
        }
    }

    /// Keeps the first `bytes` bytes of `frame`, one at least, as those of a page. A page of
    /// zeroes that was never written takes no memory.
    pub(super) fn write<M: Memory>(
        &mut self,
        machine: &M,
        number: u64,
        frame: Frame,
        bytes: usize,
    ) -> Result<(), Error> {
        let words = bytes.div_ceil(8);
        let is_zero = machine.find_word(frame, 0, words, u64::MAX).is_none();
        if is_zero && self.get(number).is_none() {
            return Ok(());
        }
        let page = self.get_or_make(number)?;
        let kept = page[words - 1];
        page[..words].fill(0);
        let mut from = 0;
        while let Some((index, word)) = machine.find_word(frame, from, words, u64::MAX) {
            page[index] = word;
            from = index + 1;
        }
        if !bytes.is_multiple_of(8) {
            let mask = first_bytes(bytes % 8);
            page[words - 1] = page[words - 1] & mask | kept & !mask;
        }
        Ok(())
    }

    /// Forgets a page: it is zero from now on.
    pub(super) fn forget(&mut self, number: u64) {
        if let Ok(place) = self.place(number / CHUNK) {
            self.chunks[place].1[(number % CHUNK) as usize] = None;
        }
    }

    /// Forgets everything behind the first `bytes` bytes. O(pages kept).
    pub(super) fn truncate(&mut self, bytes: u64) {
        let (last, inside) = (bytes / PAGE_SIZE as u64, bytes % PAGE_SIZE as u64);
        for (chunk, pages) in &mut self.chunks {
            for (number, page) in (*chunk * CHUNK..).zip(pages.iter_mut()) {
                match page {
                    Some(words) if number == last && inside > 0 => {
                        let words = &mut words[inside as usize / 8..];
                        words[0] &= first_bytes(inside as usize % 8);
                        words[1..].fill(0);
                    }
                    _ if number >= last => *page = None,
                    _ => {}
                }
            }
        }
    }

    /// How many pages are kept. O(pages).
    pub(super) fn len(&self) -> usize {
        let pages = self.chunks.iter().flat_map(|(_, pages)| pages.iter());
        pages.flatten().count()
    }

    fn get(&self, number: u64) -> Option<&[u64]> {
        let place = self.place(number / CHUNK).ok()?;
        self.chunks[place].1[(number % CHUNK) as usize].as_deref()
    }

    fn get_or_make(&mut self, number: u64) -> Result<&mut [u64], Error> {
        let place = match self.place(number / CHUNK) {
            Ok(place) => place,
            Err(place) => {
                let pages = filled(CHUNK as usize, || None)?;
                self.chunks.try_reserve(1)?;
                self.chunks.insert(place, (number / CHUNK, pages));
                place
            }
        };
        let page = &mut self.chunks[place].1[(number % CHUNK) as usize];
        if page.is_none() {
            *page = Some(filled(WORDS_PER_FRAME, || 0)?);
        }
        Ok(page.as_deref_mut().expect("just made"))
    }

    /// Where a chunk is, or would be.
    fn place(&self, chunk: u64) -> Result<usize, usize> {
        self.chunks
            .binary_search_by_key(&chunk, |(number, _)| *number)
    }
}

const _: () = assert!(PAGE_SIZE == WORDS_PER_FRAME * size_of::<u64>());

/// A word's first `count` bytes in memory.
fn first_bytes(count: usize) -> u64 {
    let byte = |index| if index < count { 0xff } else { 0 };
    u64::from_ne_bytes(core::array::from_fn(byte))
}
