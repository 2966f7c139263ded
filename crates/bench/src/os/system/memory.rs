//! Mappings and the program break.

use super::{answered, failed};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use workloads::{Backing, Call, Error, Prot};

#[inline]
pub fn map(len: usize, prot: Prot, backing: Backing<'_, File>) -> Result<usize, Error> {
    let (flags, fd) = flags(backing);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(ptr::null_mut(), len, bits(prot), flags, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(failed(Call::Map));
    }
    Ok(start as usize)
}

/// Maps `len` bytes at `start`, over what the workload has mapped there.
pub fn map_over(
    start: usize,
    len: usize,
    prot: Prot,
    backing: Backing<'_, File>,
) -> Result<(), Error> {
    let (flags, fd) = flags(backing);
    let flags = flags | libc::MAP_FIXED;
    // SAFETY: workloads map only over memory that they have mapped through `map`, and hold no
    // references into it.
    let mapped = unsafe { libc::mmap(start as *mut _, len, bits(prot), flags, fd, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(failed(Call::Map));
    }
    Ok(())
}

/// The flags of a mapping, and the descriptor of its file.
#[inline]
fn flags(backing: Backing<'_, File>) -> (libc::c_int, libc::c_int) {
    match backing {
        Backing::Anonymous => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        Backing::SharedAnonymous => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
        Backing::PrivateFile(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
        Backing::SharedFile(file) => (libc::MAP_SHARED, file.as_raw_fd()),
    }
}

fn bits(prot: Prot) -> libc::c_int {
    match prot {
        Prot::None => libc::PROT_NONE,
        Prot::Read => libc::PROT_READ,
        Prot::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
    }
}

#[inline]
pub fn unmap(start: usize, len: usize) -> Result<(), Error> {
    // SAFETY: workloads unmap only memory that they have mapped through `map`, and
    // hold no references into it.
    answered(Call::Unmap, unsafe { libc::munmap(start as *mut _, len) })
}

#[inline]
pub fn protect(start: usize, len: usize, prot: Prot) -> Result<(), Error> {
    // SAFETY: workloads protect only memory that they have mapped through `map`.
    let result = unsafe { libc::mprotect(start as *mut _, len, bits(prot)) };
    answered(Call::Protect, result)
}

#[inline]
pub fn discard(start: usize, len: usize) -> Result<(), Error> {
    // SAFETY: workloads discard only memory that they have mapped through `map`, and hold no
    // references into it.
    let result = unsafe { libc::madvise(start as *mut _, len, libc::MADV_DONTNEED) };
    answered(Call::Discard, result)
}

#[inline]
pub fn remap(start: usize, len: usize, new_len: usize) -> Result<usize, Error> {
    // SAFETY: the workload has mapped the memory through `map`, and holds no references into its
    // old place.
    let moved = unsafe { libc::mremap(start as *mut _, len, new_len, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED {
        return Err(failed(Call::Remap));
    }
    Ok(moved as usize)
}

#[inline]
pub fn page_out(start: usize, len: usize) -> Result<(), Error> {
    // SAFETY: the workload has mapped the memory through `map`; its content does not change.
    let result = unsafe { libc::madvise(start as *mut _, len, libc::MADV_PAGEOUT) };
    answered(Call::PageOut, result)
}

/// Moves the break to the address from which workloads may move it, and returns that address.
pub fn program_break(page: usize) -> Result<usize, Error> {
    /// One for the process, so that threads move one break; 0 until chosen.
    /// Not a `OnceLock`: a child forked while that is filled would wait for ever.
    static BASE: AtomicUsize = AtomicUsize::new(0);
    let ours = kernel_break(0).next_multiple_of(page) + GAP;
    let base = match BASE.compare_exchange(0, ours, Relaxed, Relaxed) {
        Ok(_) => ours,
        Err(theirs) => theirs,
    };
    set_program_break(base)?;
    Ok(base)
}

#[inline]
pub fn set_program_break(to: usize) -> Result<(), Error> {
    // The system call says where the break is now; that is its only error.
    if kernel_break(to) != to {
        return Err(Error::Failed(Call::Brk, libc::ENOMEM));
    }
    Ok(())
}

/// Bytes left to malloc between the break it knows and the one that brk1 moves.
///
/// libc's malloc grows the heap by the break as well. Below the gap is malloc's,
/// above it is brk1's. The system call is made directly, so libc goes on believing
/// in its own break: when malloc sets it, the kernel takes only pages of the gap
/// away, which no code has touched, and brk1's next call puts them back.
const GAP: usize = 16 << 20;

/// Asks the kernel for the break `to`; returns the break there is then.
#[inline]
fn kernel_break(to: usize) -> usize {
    // SAFETY: `to` is 0 (which only asks) or above the end of malloc's heap, see
    // [`GAP`], so no memory in use is taken away.
    unsafe { libc::syscall(libc::SYS_brk, to) as usize }
}
