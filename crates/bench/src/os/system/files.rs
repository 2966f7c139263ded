//! Files: mapped, opened, locked, polled.

use super::{answered, failed, failed_with};
use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use workloads::{Call, Descriptor, Error, Files};

/// A file of `len` zero bytes in `directory`, which no other process can open.
pub fn unnamed(directory: &Path, len: usize) -> Result<File, Error> {
    unnamed_file(directory)
        .and_then(|file| file.set_len(len as u64).map(|()| file))
        .map_err(|error| failed_with(Call::File, &error))
}

/// The same, with its first pages in memory.
pub fn cached(directory: &Path, len: usize) -> Result<File, Error> {
    /// Bytes that are brought into memory at most: libraries are shorter.
    const MOST: usize = 256 << 20;
    let file = unnamed(directory, len)?;
    let read = io::copy(&mut (&file).take(len.min(MOST) as u64), &mut io::sink());
    read.map_err(|error| failed_with(Call::File, &error))?;
    Ok(file)
}

/// The files of programs in `directory`, which no other process can open.
pub fn inputs(directory: &Path, page: usize) -> Result<Files<File>, Error> {
    Files::try_new(|input| {
        let file = unnamed(directory, input.size())?;
        for number in 0..input.size() / page {
            file.write_all_at(&[input.byte(number)], (number * page) as u64)
                .map_err(|error| failed_with(Call::File, &error))?;
        }
        Ok(file)
    })
}

/// Writes from `at` on; returns the number of bytes.
#[inline]
pub fn write_at(file: &File, at: u64, bytes: &[u8]) -> Result<usize, Error> {
    file.write_at(bytes, at)
        .map_err(|error| failed_with(Call::Write, &error))
}

/// Reads from `at` on; returns the number of bytes.
#[inline]
pub fn read_at(file: &File, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
    file.read_at(bytes, at)
        .map_err(|error| failed_with(Call::Read, &error))
}

/// Reads the next part of this process's smaps. At its end returns false, and begins again.
pub fn scan(smaps: &mut Option<File>) -> Result<bool, Error> {
    /// As much as the kernel writes at a time.
    const BYTES: usize = 4096;
    let mut read = || -> io::Result<bool> {
        let file = match smaps {
            Some(file) => file,
            None => smaps.insert(File::open("/proc/self/smaps")?),
        };
        let is_more = file.read(&mut [0; BYTES])? > 0;
        if !is_more {
            file.rewind()?;
        }
        Ok(is_more)
    };
    read().map_err(|error| failed_with(Call::Scan, &error))
}

#[inline]
pub fn open(path: &CStr) -> Result<Descriptor, Error> {
    // SAFETY: a path that ends in a zero byte.
    match unsafe { libc::open(path.as_ptr(), libc::O_RDWR) } {
        -1 => Err(failed(Call::Open)),
        fd => Ok(Descriptor(fd)),
    }
}

#[inline]
pub fn close(descriptor: Descriptor) -> Result<(), Error> {
    // SAFETY: workloads close only descriptors that they have opened, once.
    answered(Call::Close, unsafe { libc::close(descriptor.0) })
}

/// Locks (`F_WRLCK`) or unlocks (`F_UNLCK`) the first byte, waiting for it.
#[inline]
pub fn set_lock(file: Descriptor, kind: libc::c_int) -> Result<(), Error> {
    // SAFETY: zeroes are a valid `flock`: from the start of the file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    // SAFETY: `lock` is valid for the call.
    answered(Call::Lock, unsafe {
        libc::fcntl(file.0, libc::F_SETLKW, &lock)
    })
}

/// Returns true if a write would not wait now.
#[inline]
pub fn poll_writable(descriptor: Descriptor) -> Result<bool, Error> {
    let mut entry = libc::pollfd {
        fd: descriptor.0,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one valid entry.
    match unsafe { libc::poll(&mut entry, 1, 0) } {
        -1 => Err(failed(Call::Poll)),
        _ => Ok(entry.revents == libc::POLLOUT),
    }
}

/// Waits until one of the descriptors can be read from; returns which, as bits.
#[inline]
pub fn poll_readable(from: &[Descriptor]) -> Result<u64, Error> {
    const MOST: usize = 64;
    let entry = |place: usize| libc::pollfd {
        fd: from.get(place).map_or(-1, |one| one.0),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: [libc::pollfd; MOST] = std::array::from_fn(entry);
    let count = from.len().min(MOST) as libc::nfds_t;
    // SAFETY: `count` valid entries.
    while unsafe { libc::poll(entries.as_mut_ptr(), count, -1) } < 0 {
        match failed(Call::Poll) {
            Error::Failed(_, libc::EINTR) => {}
            error => return Err(error),
        }
    }
    let ready = entries.iter().enumerate();
    Ok(ready.fold(0, |bits, (place, one)| {
        bits | u64::from(one.revents != 0) << place
    }))
}

/// A file in `directory` that has no name, or has lost it.
fn unnamed_file(directory: &Path) -> io::Result<File> {
    let unnamed = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .open(directory);
    match unnamed {
        // Not every file system can; old kernels see a directory opened for writing.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
            ) => {}
        other => return other,
    }
    let (file, path) = named_file(directory)?;
    // SAFETY: a path that ends in a zero byte.
    match unsafe { libc::unlink(path.as_ptr()) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A new file in `directory`, and its path.
pub fn named_file(directory: &Path) -> io::Result<(File, CString)> {
    let template = directory.join("scalevm.XXXXXX");
    let template = CString::new(template.as_os_str().as_bytes())?.into_raw();
    // SAFETY: a writable string that ends in XXXXXX and a zero byte; `mkstemp` changes neither its
    // length nor its end; taken back at once.
    let (fd, path) = unsafe { (libc::mkstemp(template), CString::from_raw(template)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is open, and nothing else owns it.
    Ok((unsafe { File::from_raw_fd(fd) }, path))
}
