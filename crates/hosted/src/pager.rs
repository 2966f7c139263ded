//! Stores of pages: files.

use crate::Hosted;
use machine::{Frame, Memory, PAGE_SIZE, Pager, PagerError, Truncate};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Frames in one system call.
const BATCH: usize = 64;

/// A file as a store: page *n* is its bytes from *n* · 4,096 on. It grows as pages, or parts of
/// pages, are written to it; past its end it is zero.
///
/// A call is one system call per 64 pages, and copies nothing in this process. When a write
/// returns, it is in the host's page cache, not on its disk.
pub struct FilePager {
    file: File,
}

impl FilePager {
    /// A store in `file`, which must be open for the calls that will be made.
    pub fn new(file: File) -> Self {
        FilePager { file }
    }

    /// A store in a nameless file in the host's temporary directory, which disappears when the
    /// store is dropped.
    ///
    /// # Errors
    /// If the host cannot create one.
    pub fn temporary() -> io::Result<Self> {
        tempfile::tempfile().map(Self::new)
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Truncate<Hosted> for FilePager {
    /// Truncates the file if it is longer.
    fn truncate(&self, _machine: &Hosted, bytes: u64) -> Result<(), PagerError> {
        let cut = || {
            if self.file.metadata()?.len() > bytes {
                self.file.set_len(bytes)
            } else {
                Ok(())
            }
        };
        cut().map_err(|error: io::Error| PagerError {
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })
    }
}

impl Pager<Hosted> for FilePager {
    unsafe fn read(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        let all = frames.len() * PAGE_SIZE;
        let read = |parts: &[libc::iovec], at| {
            // SAFETY: the parts are frames that are the caller's to touch, alone, or parts of them.
            unsafe { libc::preadv(self.file.as_raw_fd(), parts.as_ptr(), count(parts), at) }
        };
        let found = match offset(first, all) {
            Some(offset) => transfer(machine, frames, all, offset, read)?,
            // No file is so long.
            None => 0,
        };
        let behind = Parts::new(machine, frames, found, all);
        for part in behind {
            // SAFETY: the part lies in a frame that belongs to the caller alone.
            unsafe { part.iov_base.cast::<u8>().write_bytes(0, part.iov_len) };
        }
        Ok(())
    }

    unsafe fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        let bytes = bytes.min(frames.len() * PAGE_SIZE);
        let write = |parts: &[libc::iovec], at| {
            // SAFETY: the parts are memory that lives as long as the machine. Tasks may write it
            // meanwhile: only the host's kernel reads it here.
            unsafe { libc::pwritev(self.file.as_raw_fd(), parts.as_ptr(), count(parts), at) }
        };
        let offset = offset(first, bytes).ok_or(PagerError { errno: libc::EFBIG })?;
        let written = transfer(machine, frames, bytes, offset, write)?;
        if written == bytes {
            Ok(())
        } else {
            // The host took nothing and did not say why.
            Err(PagerError { errno: libc::EIO })
        }
    }
}

/// Where page `first` begins in a file, if a file can hold `bytes` from there on.
fn offset(first: u64, bytes: usize) -> Option<i64> {
    let offset = i64::try_from(first.checked_mul(PAGE_SIZE as u64)?).ok()?;
    offset
        .checked_add(i64::try_from(bytes).ok()?)
        .map(|_| offset)
}

fn count(parts: &[libc::iovec]) -> i32 {
    parts.len() as i32
}

/// Moves the first `bytes` bytes of `frames` by as many calls of `call` (bytes moved, or −1 and
/// errno) as it takes; returns how many it moved before `call` returned 0.
fn transfer(
    machine: &Hosted,
    frames: &[Frame],
    bytes: usize,
    offset: i64,
    mut call: impl FnMut(&[libc::iovec], i64) -> isize,
) -> Result<usize, PagerError> {
    const NOTHING: libc::iovec = libc::iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: 0,
    };
    let mut done = 0;
    while done < bytes {
        let mut batch = [NOTHING; BATCH];
        let parts = Parts::new(machine, frames, done, bytes).take(BATCH);
        let count = batch
            .iter_mut()
            .zip(parts)
            .map(|(to, part)| *to = part)
            .count();
        match call(&batch[..count], offset + done as i64) {
            0 => break,
            -1 => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                errno => {
                    let errno = errno.unwrap_or(libc::EIO);
                    return Err(PagerError { errno });
                }
            },
            moved => done += moved as usize,
        }
    }
    Ok(done)
}

/// The memory of a run of bytes in frames: one part per frame.
struct Parts<'a> {
    machine: &'a Hosted,
    frames: &'a [Frame],
    at: usize,
    end: usize,
}

impl<'a> Parts<'a> {
    /// The bytes `from..end` of `frames`.
    fn new(machine: &'a Hosted, frames: &'a [Frame], from: usize, end: usize) -> Self {
        Parts {
            machine,
            frames,
            at: from,
            end,
        }
    }
}

impl Iterator for Parts<'_> {
    type Item = libc::iovec;

    fn next(&mut self) -> Option<libc::iovec> {
        if self.at >= self.end {
            return None;
        }
        let within = self.at % PAGE_SIZE;
        let frame = self.machine.direct_map(self.frames[self.at / PAGE_SIZE]);
        let length = (PAGE_SIZE - within).min(self.end - self.at);
        self.at += length;
        Some(libc::iovec {
            iov_base: frame.as_ptr().wrapping_add(within).cast(),
            iov_len: length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Ordering;

    /// A host that moves at most 3,000 bytes a call, is interrupted at every third, and reaches its
    /// end at byte `end`.
    struct Reluctant {
        calls: usize,
        end: usize,
        /// The bytes it has moved, by their address.
        moved: Vec<usize>,
    }

    impl Reluctant {
        fn call(&mut self, base: usize, parts: &[libc::iovec], at: i64) -> isize {
            self.calls += 1;
            if self.calls.is_multiple_of(3) {
                set_errno(libc::EINTR);
                return -1;
            }
            assert_eq!(at as usize, self.moved.len(), "the place in the file");
            let bytes = parts.iter().flat_map(|part| {
                let first = part.iov_base as usize - base;
                first..first + part.iov_len
            });
            self.moved
                .extend(bytes.take(3_000.min(self.end - at as usize)));
            self.moved.len() as isize - at as isize
        }
    }

    fn set_errno(errno: i32) {
        // SAFETY: the location belongs to the calling thread.
        unsafe { *libc::__errno_location() = errno };
    }

    #[test]
    fn short_and_interrupted_transfers_go_on_where_they_stopped() {
        let machine = Hosted::with_memory(1, 3 * PAGE_SIZE).expect("memory");
        let base = machine.direct_map(Frame(0)).as_ptr() as usize;
        for (bytes, end, done) in [(9_000, 20_000, 9_000), (12_288, 10_000, 10_000), (0, 9, 0)] {
            let mut host = Reluctant {
                calls: 0,
                end,
                moved: Vec::new(),
            };
            let frames = [Frame(2), Frame(0), Frame(1)];
            let call = |parts: &[libc::iovec], at: i64| host.call(base, parts, at);
            assert_eq!(transfer(&machine, &frames, bytes, 0, call), Ok(done));
            let expected = (0..done).map(|byte| {
                let frame = frames[byte / PAGE_SIZE].index();
                frame * PAGE_SIZE + byte % PAGE_SIZE
            });
            assert!(host.moved.into_iter().eq(expected), "{bytes} bytes");
        }
    }

    #[test]
    fn an_error_keeps_its_number() {
        let machine = Hosted::with_memory(1, PAGE_SIZE).expect("memory");
        let call = |_: &[libc::iovec], _| {
            set_errno(libc::ENOSPC);
            -1
        };
        let error = PagerError { errno: 28 };
        assert_eq!(transfer(&machine, &[Frame(0)], 1, 0, call), Err(error));
    }

    #[test]
    fn what_the_host_does_not_take_is_an_error() {
        let machine = Hosted::with_memory(1, PAGE_SIZE).expect("memory");
        let full = File::options().write(true).open("/dev/full");
        let pager = FilePager::new(full.expect("Linux has one"));
        // SAFETY: the frames are the test's.
        let written = unsafe { pager.write(&machine, 0, &[Frame(0)], PAGE_SIZE) };
        assert_eq!(written, Err(PagerError { errno: 28 }));
        // SAFETY: the frames are the test's.
        let read = unsafe { pager.read(&machine, 0, &[Frame(0)]) };
        assert_eq!(read, Err(PagerError { errno: 9 }), "open for writing only");
    }

    #[test]
    fn no_file_is_endless() {
        let machine = Hosted::with_memory(1, PAGE_SIZE).expect("memory");
        let pager = FilePager::temporary().expect("a file");
        // SAFETY: the frame is the test's.
        let word = unsafe { machine.word(Frame(0), 5) };
        for far in [1 << 51, (1 << 51) - 1, 1 << 60, u64::MAX] {
            word.store(1, Ordering::Relaxed);
            // SAFETY: the frames are the test's.
            let written = unsafe { pager.write(&machine, far, &[Frame(0)], PAGE_SIZE) };
            assert_eq!(written, Err(PagerError { errno: 27 }), "page {far}");
            // SAFETY: the frames are the test's.
            assert_eq!(unsafe { pager.read(&machine, far, &[Frame(0)]) }, Ok(()));
            assert_eq!(word.load(Ordering::Relaxed), 0, "page {far}");
        }
    }
}
