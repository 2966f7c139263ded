//! Access to the memory of the calling thread.

use super::Thread;
use crate::errno::Errno;
use alloc::vec::Vec;
use core::mem::{MaybeUninit, size_of};
use core::ops::Range;
use core::slice;
use linux_raw_sys::general as linux;
use machine::{PAGE_SIZE, PageFault};

/// The most bytes of a path, its end included.
const PATH: usize = 4096;

/// Types whose values are plain bytes.
///
/// # Safety
/// Any bytes are a value, and no byte of a value is undefined.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        // SAFETY: numbers, and structures of numbers, whose padding is named or absent.
        $(unsafe impl Plain for $type {})*
    };
}

plain!(
    u8,
    u16,
    u32,
    u64,
    i64,
    i32,
    usize,
    linux::stat,
    linux::statx,
    linux::timespec,
    linux::timeval,
    linux::pollfd,
    linux::statfs64,
    linux::kernel_sigaction,
    linux_raw_sys::system::new_utsname,
);

// SAFETY: so is each element, and nothing is between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

impl Thread {
    /// Fills `to` from the thread's memory.
    pub fn read_bytes(&self, from: usize, to: &mut [u8]) -> Result<(), Errno> {
        self.copy(|| metal::copy_from_user(from, to))
    }

    /// Writes to the thread's memory.
    pub fn write_bytes(&self, to: usize, from: &[u8]) -> Result<(), Errno> {
        self.copy(|| metal::copy_to_user(from, to))
    }

    /// Writes to the thread's memory up to the first byte that is not mapped; returns the number of
    /// bytes.
    pub fn write_some(&self, to: usize, from: &[u8]) -> usize {
        match self.write_bytes(to, from) {
            Ok(()) => from.len(),
            Err(_) => {
                self.page_by_page(to, from.len(), |at, part| self.write_bytes(at, &from[part]))
            }
        }
    }

    /// Fills `to` from the thread's memory up to the first byte that is not mapped; returns the
    /// number of bytes.
    pub fn read_some(&self, from: usize, to: &mut [u8]) -> usize {
        match self.read_bytes(from, to) {
            Ok(()) => to.len(),
            Err(_) => {
                let bytes = to.len();
                self.page_by_page(from, bytes, |at, part| self.read_bytes(at, &mut to[part]))
            }
        }
    }

    /// Copies `bytes` from `at` on, page by page, up to the first page that fails; returns the
    /// number of bytes before that.
    fn page_by_page(
        &self,
        at: usize,
        bytes: usize,
        mut copy: impl FnMut(usize, Range<usize>) -> Result<(), Errno>,
    ) -> usize {
        let mut done = 0;
        while done < bytes {
            let Some(here) = at.checked_add(done) else {
                break;
            };
            let end = (done + PAGE_SIZE - here % PAGE_SIZE).min(bytes);
            if copy(here, done..end).is_err() {
                break;
            }
            done = end;
        }
        done
    }

    /// Changes the aligned word at `at` atomically, also with respect to programs' atomic
    /// instructions; returns the old word.
    pub fn update(&self, at: usize, change: impl Fn(u32) -> u32) -> Result<u32, Errno> {
        let mut word = self.read(at)?;
        loop {
            let found = self.copy(|| metal::exchange_user(at, word, change(word)))?;
            if found == word {
                return Ok(word);
            }
            word = found;
        }
    }

    /// Tries an access until it neither faults nor is refused.
    fn copy<R>(&self, mut access: impl FnMut() -> Result<R, PageFault>) -> Result<R, Errno> {
        loop {
            match access() {
                Ok(result) => return Ok(result),
                Err(fault) => self.space.fault(fault).map_err(|_| Errno::FAULT)?,
            }
        }
    }

    /// Reads a value.
    pub fn read<T: Plain>(&self, from: usize) -> Result<T, Errno> {
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: the bytes of the value, which are zero so far.
        let bytes = unsafe { slice::from_raw_parts_mut(value.as_mut_ptr().cast(), size_of::<T>()) };
        self.read_bytes(from, bytes)?;
        // SAFETY: all bytes are a value, as `Plain` says.
        Ok(unsafe { value.assume_init() })
    }

    /// Writes a value.
    pub fn write<T: Plain>(&self, to: usize, value: T) -> Result<(), Errno> {
        // SAFETY: the bytes of a value, all of them defined.
        let bytes = unsafe { slice::from_raw_parts((&raw const value).cast(), size_of::<T>()) };
        self.write_bytes(to, bytes)
    }

    /// Reads the bytes up to a 0, which are fewer than `most`.
    pub fn read_text(&self, from: usize, most: usize) -> Result<Vec<u8>, Errno> {
        let text = self.read_start(from, most)?;
        if text.len() == most {
            Err(Errno::NAMETOOLONG)
        } else {
            Ok(text)
        }
    }

    /// Reads the bytes up to a 0, or `most` bytes.
    pub fn read_start(&self, from: usize, most: usize) -> Result<Vec<u8>, Errno> {
        /// Bytes that are read at a time. Pages begin with such a part, since the next page may not
        /// be mapped.
        const PART: usize = 64;
        let mut text = Vec::new();
        while text.len() < most {
            let at = from.checked_add(text.len()).ok_or(Errno::FAULT)?;
            let count = (PART - at % PART).min(most - text.len());
            let mut part = [0; PART];
            let part = &mut part[..count];
            self.read_bytes(at, part)?;
            if let Some(end) = part.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&part[..end]);
                return Ok(text);
            }
            text.extend_from_slice(part);
        }
        Ok(text)
    }

    /// Reads a path.
    pub fn read_path(&self, from: usize) -> Result<Vec<u8>, Errno> {
        self.read_text(from, PATH)
    }
}
