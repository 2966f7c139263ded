//! The pages a [`super::MemoryPager`] keeps, sparse.

use crate::error::Error;
use crate::heap::filled;
use alloc::boxed::Box;
use alloc::vec::Vec;
use machine::{Frame, Memory, PAGE_SIZE};

/// Pages in a chunk.
pub(super) const CHUNK: u64 = 32;

type Page = Box<[u8]>;

/// Chunks of neighbouring pages, by number.
#[derive(Default)]
pub(super) struct Sheet {
    chunks: Vec<(u64, Box<[Option<Page>]>)>,
}

impl Sheet {
    /// Fills `frame` with a page.
    ///
    /// # Safety
    /// As for [`machine::Pager::read`].
    pub(super) unsafe fn read<M: Memory>(&self, machine: &M, number: u64, frame: Frame) {
        // SAFETY: so says the caller.
        unsafe {
            match self.get(number) {
                Some(page) => machine.write_bytes(frame, 0, page),
                None => machine.zero(frame),
            }
        }
    }

    /// Keeps the first `bytes` bytes of `frame`, one at least, as those of a page. A page of
    /// zeroes that was never written takes no memory.
    ///
    /// # Safety
    /// As for [`machine::Pager::write`].
    pub(super) unsafe fn write<M: Memory>(
        &mut self,
        machine: &M,
        number: u64,
        frame: Frame,
        bytes: usize,
    ) -> Result<(), Error> {
        debug_assert!(
            0 < bytes && bytes <= PAGE_SIZE,
            "{bytes} bytes are no part of a page"
        );
        let is_zero = || {
            let words = bytes.div_ceil(size_of::<u64>());
            // SAFETY: so says the caller.
            unsafe { machine.find_word(frame, 0, words, u64::MAX) }.is_none()
        };
        let page = match self.get_mut(number) {
            Some(page) => page,
            None if is_zero() => return Ok(()),
            None => self.make(number)?,
        };
        // SAFETY: so says the caller.
        unsafe { machine.read_bytes(frame, 0, &mut page[..bytes]) };
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
                    Some(page) if number == last && inside > 0 => page[inside as usize..].fill(0),
                    _ if number >= last => *page = None,
                    _ => {}
                }
            }
        }
    }

    /// The number of pages kept. O(pages).
    pub(super) fn len(&self) -> usize {
        let pages = self.chunks.iter().flat_map(|(_, pages)| pages.iter());
        pages.flatten().count()
    }

    fn get(&self, number: u64) -> Option<&[u8]> {
        let place = self.place(number / CHUNK).ok()?;
        self.chunks[place].1[(number % CHUNK) as usize].as_deref()
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut [u8]> {
        let place = self.place(number / CHUNK).ok()?;
        self.chunks[place].1[(number % CHUNK) as usize].as_deref_mut()
    }

    /// Makes a page that is not kept yet.
    #[inline(never)]
    fn make(&mut self, number: u64) -> Result<&mut [u8], Error> {
        let place = match self.place(number / CHUNK) {
            Ok(place) => place,
            Err(place) => {
                let pages = filled(CHUNK as usize, || None)?;
                self.chunks.try_reserve(1)?;
                self.chunks.insert(place, (number / CHUNK, pages));
                debug_assert!(self.is_sorted_at(place), "chunks out of order");
                place
            }
        };
        let page = &mut self.chunks[place].1[(number % CHUNK) as usize];
        Ok(page.insert(filled(PAGE_SIZE, || 0)?))
    }

    /// Returns true if the chunk at `place` is in order with its neighbours.
    fn is_sorted_at(&self, place: usize) -> bool {
        let near = &self.chunks[place.saturating_sub(1)..];
        near.iter()
            .take(3)
            .is_sorted_by(|(one, _), (next, _)| one < next)
    }

    /// The place of a chunk, or the one that it would have.
    fn place(&self, chunk: u64) -> Result<usize, usize> {
        self.chunks
            .binary_search_by_key(&chunk, |(number, _)| *number)
    }
}
