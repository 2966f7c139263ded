//! The memory through which the kernel delivers one CPU's records.

use super::Counter;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::io;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;
const HEAD: usize = offset_of!(perf_event_mmap_page, data_head);
const TAIL: usize = offset_of!(perf_event_mmap_page, data_tail);

/// A mapped ring: the kernel writes, one reader reads.
#[derive(Debug)]
pub(crate) struct Ring {
    header: NonNull<perf_event_mmap_page>,
    data: NonNull<u8>,
    /// A power of two.
    size: usize,
    /// Bytes to unmap; none in tests.
    mapped: Option<usize>,
}

// SAFETY: the mapping belongs to this ring alone, and reading takes `&mut`, so one thread reads at
// a time.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of `counter` with `pages` or, where locked memory is short, as many as fit.
    pub fn of(counter: &Counter, pages: usize) -> io::Result<Ring> {
        let mut pages = pages.next_power_of_two();
        loop {
            match Self::map(counter, pages) {
                Err(error) if pages > 1 && short_of_memory(&error) => pages /= 2,
                result => return result,
            }
        }
    }

    fn map(counter: &Counter, pages: usize) -> io::Result<Ring> {
        let length = (1 + pages) * PAGE;
        let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let (none, fd) = (std::ptr::null_mut(), counter.as_raw_fd());
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory in use.
        let base = unsafe { libc::mmap(none, length, read_write, shared, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring {
            header: base.cast(),
            // SAFETY: the mapping is one page longer than the data, so this stays inside it.
            data: unsafe { base.add(PAGE) },
            size: pages * PAGE,
            mapped: Some(length),
        })
    }

    /// Moves all available records to the end of `into`.
    pub fn read(&mut self, into: &mut Vec<u8>) {
        // Acquire: pairs with the kernel's barrier between writing a record and `data_head`.
        let head = self.word(HEAD).load(Ordering::Acquire);
        let tail = self.word(TAIL);
        // Relaxed: only this reader writes it.
        let from = tail.load(Ordering::Relaxed);
        self.copy(from, head, into);
        // Release: the copy finishes before the kernel sees the new `data_tail` and overwrites the
        // records; its read pairs with this store by a control dependency.
        tail.store(head, Ordering::Release);
    }

    fn copy(&self, from: u64, to: u64, into: &mut Vec<u8>) {
        let length = (to.wrapping_sub(from) as usize).min(self.size);
        let start = from as usize & (self.size - 1);
        let first = length.min(self.size - start);
        into.reserve(length);
        // SAFETY: both parts lie in the data between tail and head, where the kernel does not write
        // until the tail moves; `into` has room reserved for both.
        unsafe {
            let end = into.as_mut_ptr().add(into.len());
            self.data
                .add(start)
                .copy_to_nonoverlapping(NonNull::new_unchecked(end), first);
            let rest = NonNull::new_unchecked(end.add(first));
            self.data.copy_to_nonoverlapping(rest, length - first);
            into.set_len(into.len() + length);
        }
    }

    /// A word of the header, which the kernel may write at any time.
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the header, which lives as long as the ring and is accessed
        // only as an atomic.
        unsafe { AtomicU64::from_ptr(self.header.byte_add(offset).cast().as_ptr()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Some(length) = self.mapped {
            // SAFETY: `map` made this mapping, and with the ring goes its last user.
            unsafe { libc::munmap(self.header.as_ptr().cast(), length) };
        }
    }
}

fn short_of_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in which the test plays the kernel.
    fn ring(size: usize) -> Ring {
        // SAFETY: all fields are integers, for which zeroes are valid.
        let header: perf_event_mmap_page = unsafe { std::mem::zeroed() };
        let data = Box::leak(vec![0; size].into_boxed_slice());
        Ring {
            header: NonNull::from(Box::leak(Box::new(header))),
            data: NonNull::from(data).cast(),
            size,
            mapped: None,
        }
    }

    /// Writes, then moves the head, as the kernel does.
    fn write(ring: &Ring, bytes: &[u8]) {
        let head = ring.word(HEAD);
        let at = head.load(Ordering::Relaxed);
        for (i, &byte) in bytes.iter().enumerate() {
            let index = (at as usize + i) % ring.size;
            // SAFETY: `index` is below the size of the data.
            unsafe { ring.data.add(index).write(byte) };
        }
        head.store(at + bytes.len() as u64, Ordering::Release);
    }

    #[test]
    fn what_was_written_is_read_once_and_in_order() {
        let mut ring = ring(64);
        let mut read = Vec::new();
        ring.read(&mut read);
        assert!(read.is_empty());
        write(&ring, &[1, 2, 3]);
        ring.read(&mut read);
        write(&ring, &[4]);
        ring.read(&mut read);
        assert_eq!(read, [1, 2, 3, 4]);
    }

    #[test]
    fn a_record_that_crosses_the_end_is_whole() {
        let mut ring = ring(64);
        let mut all = Vec::new();
        let mut written = Vec::new();
        for round in 0..20_u8 {
            let bytes: Vec<u8> = (0..40)
                .map(|i| round.wrapping_mul(40).wrapping_add(i))
                .collect();
            write(&ring, &bytes);
            written.extend(bytes);
            ring.read(&mut all);
        }
        assert_eq!(all, written);
    }

    #[test]
    fn reading_makes_room() {
        let mut ring = ring(64);
        write(&ring, &[7; 64]);
        ring.read(&mut Vec::new());
        let tail = ring.word(TAIL);
        assert_eq!(tail.load(Ordering::Acquire), 64);
    }
}
