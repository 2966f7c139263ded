//! A file's store: its bytes in the host's memory.

use hosted::Hosted;
use machine::{Frame, Memory, Ordering, PAGE_SIZE, Pager, PagerError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vm::object::Truncate;

/// What was written to the file, whole pages; behind that it is zero.
#[derive(Default)]
pub struct Store(Mutex<Vec<u8>>);

impl Store {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pager<Hosted> for Store {
    fn read(&self, machine: &Hosted, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        let bytes = self.bytes();
        let pages = bytes.chunks(PAGE_SIZE).skip(first as usize);
        let pages = pages.chain(std::iter::repeat(&[][..]));
        for (&frame, page) in frames.iter().zip(pages) {
            let mut content = page.to_vec();
            content.resize(PAGE_SIZE, 0);
            for (index, word) in content.as_chunks().0.iter().enumerate() {
                let word = u64::from_le_bytes(*word);
                machine.word(frame, index).store(word, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        let words = frames.iter().flat_map(|&frame| {
            let words = 0..PAGE_SIZE / size_of::<u64>();
            words.map(move |index| machine.word(frame, index).load(Ordering::Relaxed))
        });
        let content: Vec<u8> = words.flat_map(u64::to_le_bytes).take(bytes).collect();
        let start = first as usize * PAGE_SIZE;
        let mut kept = self.bytes();
        if kept.len() < start + bytes {
            kept.resize(start + bytes, 0);
        }
        kept[start..start + bytes].copy_from_slice(&content);
        Ok(())
    }
}

impl Truncate<Hosted> for Store {
    fn truncate(&self, _: &Hosted, bytes: u64) -> Result<(), PagerError> {
        self.bytes().truncate(bytes as usize);
        Ok(())
    }
}
